// SHA-256, HMAC and the comparison in constant time of OpenSSL's libcrypto.
#pragma once
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
