#pragma once
// The TLS functions of OpenSSL for the event loop. Swift does not import macros, and the error queue belongs to the
// thread, so each call here clears it before and after. No state here.
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// Results of a call, besides a positive number of bytes.
enum {
    THICKET_TLS_WANTS_READ = -1,
    THICKET_TLS_WANTS_WRITE = -2,
    // The peer has announced that it sends no more.
    THICKET_TLS_ENDED = -3,
    // The connection is broken; nothing may be sent on it, not even a closing alert.
    THICKET_TLS_BROKEN = -4,
};

// The newest error in words; clears the queue. Returns the bytes written.
static inline int thicket_tls_problem(char *text, int size) {
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    int count = snprintf(text, (size_t)size, "%s", reason ? reason : "no reason is known");
    ERR_clear_error();
    return count < size ? count : size - 1;
}

// Accepts only "http/1.1"; a client that offers only other protocols is refused (RFC 7301, 3.2).
static inline int thicket_tls_choose(
    SSL *ssl, const unsigned char **out, unsigned char *out_size, const unsigned char *in, unsigned int in_size,
    void *unused) {
    (void)ssl; (void)unused;
    const char *ours = "http/1.1";
    size_t size = strlen(ours);
    for (unsigned int at = 0; at < in_size && at + 1 + in[at] <= in_size; at += 1 + in[at]) {
        if (in[at] == size && memcmp(in + at + 1, ours, size) == 0) {
            *out = in + at + 1;
            *out_size = in[at];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// A key with a passphrase is refused; OpenSSL would otherwise ask for it on the terminal.
static inline int thicket_tls_no_passphrase(char *text, int size, int writing, void *unused) {
    (void)text; (void)size; (void)writing; (void)unused;
    return -1;
}

static inline SSL_CTX *thicket_tls_server_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context) return NULL;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(
        context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE
            | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(
        context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    // One system call for each packet instead of two for each record.
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    // Clients store the session tickets; the server stores nothing.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_max_early_data(context, 0);
    SSL_CTX_set_default_passwd_cb(context, thicket_tls_no_passphrase);
    SSL_CTX_set_alpn_select_cb(context, thicket_tls_choose, NULL);
    int good = SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
        && SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384") == 1
        && SSL_CTX_set_session_id_context(context, (const unsigned char *)"thicket", 7) == 1;
    if (!good) {
        SSL_CTX_free(context);
        return NULL;
    }
    return context;
}

// A client context that does not verify the server: the caller compares the server's key itself, or does not need to.
static inline SSL_CTX *thicket_tls_client_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context) return NULL;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    return context;
}

static inline int thicket_tls_use_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version) == 1 && SSL_CTX_set_max_proto_version(context, version) == 1;
}

// The keys that encrypt tickets, 80 bytes.
static inline int thicket_tls_set_ticket_keys(SSL_CTX *context, void *keys) {
    return SSL_CTX_set_tlsext_ticket_keys(context, keys, 80) == 1;
}

// Whether an error in the queue reports a missing passphrase.
static inline int thicket_tls_wants_passphrase(void) {
    unsigned long code = ERR_peek_error();
    while (code) {
        int reason = ERR_GET_REASON(code);
        if (ERR_GET_LIB(code) == ERR_LIB_PEM && (reason == PEM_R_BAD_PASSWORD_READ || reason == PEM_R_BAD_DECRYPT))
            return 1;
        ERR_get_error();
        code = ERR_peek_error();
    }
    return 0;
}

// The time when the context's certificate expires (end != 0) or becomes valid, in seconds since 1970; 0 without a
// certificate.
static inline long long thicket_tls_certificate_time(SSL_CTX *context, int end) {
    X509 *certificate = SSL_CTX_get0_certificate(context);
    if (!certificate) return 0;
    struct tm parts = {0};
    const ASN1_TIME *time = end ? X509_get0_notAfter(certificate) : X509_get0_notBefore(certificate);
    if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
    return (long long)timegm(&parts);
}

// The certificate's subject in one line. Returns the bytes written.
static inline int thicket_tls_certificate_subject(SSL_CTX *context, char *text, int size) {
    X509 *certificate = SSL_CTX_get0_certificate(context);
    text[0] = 0;
    if (!certificate) return 0;
    X509_NAME_oneline(X509_get_subject_name(certificate), text, size);
    return (int)strlen(text);
}

// OpenSSL writes to the socket directly; the process must ignore SIGPIPE.
static inline SSL *thicket_tls_accept_on(SSL_CTX *context, int fd) {
    SSL *ssl = SSL_new(context);
    if (ssl && SSL_set_fd(ssl, fd) == 1) {
        SSL_set_accept_state(ssl);
        ERR_clear_error();
        return ssl;
    }
    SSL_free(ssl);
    ERR_clear_error();
    return NULL;
}

// Connects to a server over a blocking socket. `session` is a session to resume, or NULL.
static inline SSL *thicket_tls_connect_on(SSL_CTX *context, int fd, SSL_SESSION *session) {
    SSL *ssl = SSL_new(context);
    if (ssl && SSL_set_fd(ssl, fd) == 1) {
        SSL_set_connect_state(ssl);
        if (session) SSL_set_session(ssl, session);
        ERR_clear_error();
        return ssl;
    }
    SSL_free(ssl);
    ERR_clear_error();
    return NULL;
}

static inline int thicket_tls_outcome(SSL *ssl, int result) {
    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ: return THICKET_TLS_WANTS_READ;
    case SSL_ERROR_WANT_WRITE: return THICKET_TLS_WANTS_WRITE;
    case SSL_ERROR_ZERO_RETURN: return THICKET_TLS_ENDED;
    default: return THICKET_TLS_BROKEN;
    }
}

// 1 when the handshake is complete. The queue keeps the error for `thicket_tls_problem`.
static inline int thicket_tls_handshake(SSL *ssl) {
    ERR_clear_error();
    int result = SSL_do_handshake(ssl);
    if (result == 1) return 1;
    return thicket_tls_outcome(ssl, result);
}

static inline long thicket_tls_read(SSL *ssl, void *bytes, size_t count) {
    ERR_clear_error();
    size_t taken = 0;
    int result = SSL_read_ex(ssl, bytes, count, &taken);
    long outcome = result == 1 ? (long)taken : thicket_tls_outcome(ssl, result);
    // A peer that closes without an alert ends its data, like one that shuts its socket down.
    if (outcome == THICKET_TLS_BROKEN && ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        outcome = THICKET_TLS_ENDED;
    if (result != 1) ERR_clear_error();
    return outcome;
}

static inline long thicket_tls_write(SSL *ssl, const void *bytes, size_t count) {
    ERR_clear_error();
    size_t taken = 0;
    int result = SSL_write_ex(ssl, bytes, count, &taken);
    long outcome = result == 1 ? (long)taken : thicket_tls_outcome(ssl, result);
    if (result != 1) ERR_clear_error();
    return outcome;
}

// Announces that no more is sent. 1: sent; 0: the socket accepts nothing at the moment.
static inline int thicket_tls_farewell(SSL *ssl) {
    ERR_clear_error();
    int result = SSL_shutdown(ssl);
    int outcome = result >= 0 ? 1 : thicket_tls_outcome(ssl, result) != THICKET_TLS_WANTS_WRITE;
    ERR_clear_error();
    return outcome;
}

static inline int thicket_tls_has_pending(SSL *ssl) { return SSL_has_pending(ssl); }
static inline int thicket_tls_was_resumed(SSL *ssl) { return SSL_session_reused(ssl); }

// SHA-256 of the peer's public key as encoded in its certificate (SubjectPublicKeyInfo). Returns 32, or 0 without a
// certificate.
static inline int thicket_tls_peer_key_hash(SSL *ssl, unsigned char *hash) {
    X509 *certificate = SSL_get0_peer_certificate(ssl);
    unsigned char *der = NULL;
    int count = certificate ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der) : 0;
    unsigned int size = 0;
    if (count > 0) EVP_Digest(der, (size_t)count, hash, &size, EVP_sha256(), NULL);
    OPENSSL_free(der);
    ERR_clear_error();
    return (int)size;
}
