#pragma once
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
// SHA-2 without a lookup of the implementation for each message, and with a state that can be copied. OpenSSL 3
// recommends EVP instead, which allocates and locks for each message.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

static inline int thicket_sha512_init(SHA512_CTX *state) { return SHA512_Init(state); }
static inline int thicket_sha512_update(SHA512_CTX *state, const void *bytes, size_t count) {
    return SHA512_Update(state, bytes, count);
}
static inline int thicket_sha512_final(unsigned char *digest, SHA512_CTX *state) { return SHA512_Final(digest, state); }
static inline int thicket_sha256_init(SHA256_CTX *state) { return SHA256_Init(state); }
static inline int thicket_sha256_update(SHA256_CTX *state, const void *bytes, size_t count) {
    return SHA256_Update(state, bytes, count);
}
static inline int thicket_sha256_final(unsigned char *digest, SHA256_CTX *state) { return SHA256_Final(digest, state); }

// Parameter lists contain pointers to names, which Swift strings do not keep alive.

/// Begins an HMAC (EVP_MAC-HMAC(7)) with a key and the hash function of this name.
static inline int thicket_hmac_begin(EVP_MAC_CTX *context, const char *digest, const unsigned char *key, size_t count) {
    OSSL_PARAM parameters[2] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0), OSSL_PARAM_construct_end()};
    return EVP_MAC_init(context, key, count, parameters);
}

/// One input of a derivation, possibly empty.
struct thicket_octets {
    const unsigned char *start;
    size_t count;
};

/// HKDF (EVP_KDF-HKDF(7)) in one of OpenSSL's modes. Empty inputs are left out, except the key.
static inline int thicket_hkdf(
    EVP_KDF_CTX *context, int mode, const char *digest, struct thicket_octets key, struct thicket_octets salt,
    struct thicket_octets info, unsigned char *output, size_t count) {
    OSSL_PARAM parameters[6];
    OSSL_PARAM *next = parameters;
    *next++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)digest, 0);
    *next++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
    *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)key.start, key.count);
    if (salt.count > 0)
        *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt.start, salt.count);
    if (info.count > 0)
        *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)info.start, info.count);
    *next = OSSL_PARAM_construct_end();
    return EVP_KDF_derive(context, output, count, parameters);
}
