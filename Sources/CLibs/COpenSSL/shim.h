#pragma once
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/err.h>
// The rounds of SHA-2 without looking for an implementation each time, and in a state that may be copied. OpenSSL 3 would
// rather have EVP used, which allocates and locks for each message.
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
