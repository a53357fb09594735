#include "signatures.h"

#include <limits.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <string.h>

// The length of a coordinate and of a number of P-256, of a hash by SHA-256, and of a key of Ed25519.
enum { SIZE = 32 };

static EVP_PKEY *key_of_parameters(const char *type, OSSL_PARAM *parameters) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (context == NULL || EVP_PKEY_fromdata_init(context) != 1
        || EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
        key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    return key;
}

static EVP_PKEY *rsa_key(const uint8_t *modulus, size_t modulus_length, const uint8_t *exponent, size_t exponent_length) {
    // A few zeros may stand in front, as Java writes them.
    if (modulus_length > 1100 || exponent_length > 1100) return NULL;
    EVP_PKEY *key = NULL;
    BIGNUM *n = BN_bin2bn(modulus, (int)modulus_length, NULL);
    BIGNUM *e = BN_bin2bn(exponent, (int)exponent_length, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    // With the exponent 1 anybody can sign, and a long one takes a long time.
    if (n != NULL && e != NULL && builder != NULL && BN_num_bits(n) >= 2048 && BN_num_bits(n) <= 8192 && BN_is_odd(n)
        && BN_is_odd(e) && BN_num_bits(e) >= 2 && BN_num_bits(e) <= 33
        && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1
        && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1) {
        OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(builder);
        if (parameters != NULL) key = key_of_parameters("RSA", parameters);
        OSSL_PARAM_free(parameters);
    }
    OSSL_PARAM_BLD_free(builder);
    BN_free(e);
    BN_free(n);
    return key;
}

static EVP_PKEY *p256_key(const uint8_t *x, size_t x_length, const uint8_t *y, size_t y_length) {
    if (x_length != SIZE || y_length != SIZE) return NULL;
    // An uncompressed point (SEC 1, section 2.3.3); OpenSSL refuses one that is not on the curve.
    uint8_t point[1 + 2 * SIZE] = {POINT_CONVERSION_UNCOMPRESSED};
    memcpy(point + 1, x, SIZE);
    memcpy(point + 1 + SIZE, y, SIZE);
    char group[] = "prime256v1";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point),
        OSSL_PARAM_construct_end(),
    };
    return key_of_parameters("EC", parameters);
}

static EVP_PKEY *make_key(
    storekeeper_algorithm algorithm, const uint8_t *first, size_t first_length, const uint8_t *second, size_t second_length
) {
    switch (algorithm) {
    case STOREKEEPER_RS256: return rsa_key(first, first_length, second, second_length);
    case STOREKEEPER_ES256: return p256_key(first, first_length, second, second_length);
    case STOREKEEPER_ED25519:
        return first_length == SIZE ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, first, SIZE) : NULL;
    case STOREKEEPER_HS256: break;
    }
    return NULL;
}

/// The signature of ES256, which is two numbers, as OpenSSL wants it; 0 for none.
static int der_signature(const uint8_t *signature, size_t length, uint8_t **der) {
    int der_length = 0;
    ECDSA_SIG *numbers = length == 2 * SIZE ? ECDSA_SIG_new() : NULL;
    if (numbers == NULL) return 0;
    BIGNUM *r = BN_bin2bn(signature, SIZE, NULL), *s = BN_bin2bn(signature + SIZE, SIZE, NULL);
    // The numbers belong to the signature from then on.
    if (r != NULL && s != NULL && ECDSA_SIG_set0(numbers, r, s) == 1) {
        der_length = i2d_ECDSA_SIG(numbers, der);
    } else {
        BN_free(r);
        BN_free(s);
    }
    ECDSA_SIG_free(numbers);
    return der_length;
}

static bool verifies(
    EVP_PKEY *key, const EVP_MD *hash, const uint8_t *message, size_t length, const uint8_t *signature, size_t signature_length
) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_good = context != NULL && EVP_DigestVerifyInit(context, NULL, hash, NULL, key) == 1
        && EVP_DigestVerify(context, signature, signature_length, message, length) == 1;
    EVP_MD_CTX_free(context);
    return is_good;
}

bool storekeeper_key_is_good(
    storekeeper_algorithm algorithm, const uint8_t *first, size_t first_length, const uint8_t *second, size_t second_length
) {
    if (algorithm == STOREKEEPER_HS256) return first_length >= SIZE && first_length <= INT_MAX;
    EVP_PKEY *key = make_key(algorithm, first, first_length, second, second_length);
    EVP_PKEY_free(key);
    // A failed call leaves its errors with the thread.
    ERR_clear_error();
    return key != NULL;
}

bool storekeeper_signature_is_good(
    storekeeper_algorithm algorithm, const uint8_t *first, size_t first_length, const uint8_t *second, size_t second_length,
    const uint8_t *message, size_t length, const uint8_t *signature, size_t signature_length
) {
    if (algorithm == STOREKEEPER_HS256) {
        uint8_t code[EVP_MAX_MD_SIZE];
        unsigned int code_length = 0;
        return first_length >= SIZE && first_length <= INT_MAX && signature_length == SIZE
            && HMAC(EVP_sha256(), first, (int)first_length, message, length, code, &code_length) != NULL
            && code_length == SIZE && CRYPTO_memcmp(code, signature, SIZE) == 0;
    }
    bool is_good = false;
    EVP_PKEY *key = make_key(algorithm, first, first_length, second, second_length);
    if (key != NULL && algorithm == STOREKEEPER_ES256) {
        uint8_t *der = NULL;
        int der_length = der_signature(signature, signature_length, &der);
        is_good = der_length > 0 && verifies(key, EVP_sha256(), message, length, der, (size_t)der_length);
        OPENSSL_free(der);
    } else if (key != NULL) {
        const EVP_MD *hash = algorithm == STOREKEEPER_RS256 ? EVP_sha256() : NULL;
        is_good = verifies(key, hash, message, length, signature, signature_length);
    }
    EVP_PKEY_free(key);
    ERR_clear_error();
    return is_good;
}
