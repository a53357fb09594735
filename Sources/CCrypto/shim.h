// SHA-256 and the comparison in constant time of OpenSSL's libcrypto.
#pragma once
#include <openssl/crypto.h>
#include <openssl/evp.h>
