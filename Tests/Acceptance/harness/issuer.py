"""An issuer of JSON Web Tokens: its keys, the key file of a server, and tokens."""

import base64
import hashlib
import hmac
import json
import os
import time

try:
    import jwt
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
except ImportError:
    jwt = None

ALGORITHMS = ("HS256", "RS256", "ES256", "EdDSA")


def encode(data):
    """Base64url without padding, of bytes or of a value as JSON."""
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def number(value):
    return encode(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Key:
    """A key of one algorithm: it signs tokens, and has a form for the key file."""

    def __init__(self, algorithm, name=None):
        self.algorithm, self.name = algorithm, name
        if algorithm == "HS256":
            self.private = os.urandom(32)
            parts = {"kty": "oct", "k": encode(self.private)}
        elif algorithm == "RS256":
            self.private = rsa.generate_private_key(65537, 2048)
            numbers = self.private.public_key().public_numbers()
            parts = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
        elif algorithm == "ES256":
            self.private = ec.generate_private_key(ec.SECP256R1())
            numbers = self.private.public_key().public_numbers()
            parts = {"kty": "EC", "crv": "P-256"}
            parts |= {name: encode(getattr(numbers, name).to_bytes(32, "big")) for name in "xy"}
        else:
            self.private = ed25519.Ed25519PrivateKey.generate()
            public = self.private.public_key().public_bytes(
                serialization.Encoding.Raw, serialization.PublicFormat.Raw
            )
            parts = {"kty": "OKP", "crv": "Ed25519", "x": encode(public)}
        self.public = {"alg": algorithm, "use": "sig", **parts} | ({"kid": name} if name else {})

    def sign(self, claims, **header):
        fields = {"kid": self.name} if self.name else {}
        return jwt.encode(claims, self.private, self.algorithm, headers=fields | header)

    def pem(self):
        """The public key as a text that key confusion uses as a secret."""
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )


def sign_with_secret(secret, claims, **header):
    """A token of HS256 that PyJWT refuses to make."""
    head = encode({"alg": "HS256", "typ": "JWT", **header}) + "." + encode(claims)
    return head + "." + encode(hmac.digest(secret, head.encode(), hashlib.sha256))


def claims(subject="ci", seconds=600, read=("*",), dispatch=("*",), others=True, operate=True, fork=True, **further):
    """The claims of a token that is good for some seconds; a claim that is None is left out."""
    grant = {"read": list(read), "dispatch": list(dispatch), "others": others, "operate": operate, "fork": fork}
    made = {"sub": subject, "exp": int(time.time()) + seconds, "storekeeper": grant} | further
    return {name: value for name, value in made.items() if value is not None}


def write_keys(path, *keys):
    """Writes the key file, whole at once."""
    with open(path + ".new", "w") as file:
        json.dump({"keys": [key.public if isinstance(key, Key) else key for key in keys]}, file)
    os.replace(path + ".new", path)
    return path
