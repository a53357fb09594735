#ifndef STOREKEEPER_SIGNATURES_H
#define STOREKEEPER_SIGNATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Signatures of JSON Web Tokens (RFC 7518, section 3; RFC 8037), verified by OpenSSL's libcrypto. Its functions for keys are
// macros and lists of parameters, which Swift does not import.
//
// Any thread may call any function.

typedef enum {
    STOREKEEPER_HS256,
    STOREKEEPER_RS256,
    STOREKEEPER_ES256,
    STOREKEEPER_ED25519,
} storekeeper_algorithm;

/// Whether two parts are a key of an algorithm: the secret and nothing; the modulus and the exponent, 2048 to 8192 bits; x and y
/// of a point on P-256; x of Ed25519 and nothing.
bool storekeeper_key_is_good(
    storekeeper_algorithm algorithm, const uint8_t *first, size_t first_length, const uint8_t *second, size_t second_length
);

/// Whether a signature, in the form of RFC 7518, is that of a message by a key of these parts.
bool storekeeper_signature_is_good(
    storekeeper_algorithm algorithm, const uint8_t *first, size_t first_length, const uint8_t *second, size_t second_length,
    const uint8_t *message, size_t length, const uint8_t *signature, size_t signature_length
);

#endif
