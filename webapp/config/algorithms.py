"""Which cryptographic algorithms are used, chosen only here (OWASP ASVS 5, 11.2.2): to use
another one, put it first.

Each stored value has a mark that names its algorithm, so that old and new ones can coexist until
`manage.py secrets_rotate` has rewritten everything. Passwords: PASSWORD_HASHERS in the settings,
which Django rewrites at the next log-in. Signatures of webhooks carry a version too (`v1`).
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES = 32


class WrongKey(ValueError):
    """Not encrypted with this key, or altered since."""


class Cipher(Protocol):
    """Authenticated encryption. Its output begins with `mark`."""

    mark: str

    def encrypt(self, key: bytes, text: str) -> str: ...

    def decrypt(self, key: bytes, encrypted: str) -> str:
        """Raises WrongKey."""


class Aes256Gcm:
    """AES-256 in Galois/Counter Mode (NIST SP 800-38D) with random nonces of 96 bits, under a key
    derived for this use alone (HKDF-SHA-256)."""

    mark = "gcm1:"
    NONCE_BYTES = 12

    def encrypt(self, key: bytes, text: str) -> str:
        nonce = os.urandom(self.NONCE_BYTES)
        return self.mark + base64.urlsafe_b64encode(nonce + self._cipher(key).encrypt(nonce, text.encode(), self.mark.encode())).decode("ascii")

    def decrypt(self, key: bytes, encrypted: str) -> str:
        try:
            data = base64.urlsafe_b64decode(encrypted.removeprefix(self.mark))
            return self._cipher(key).decrypt(data[: self.NONCE_BYTES], data[self.NONCE_BYTES :], self.mark.encode()).decode()
        except (InvalidTag, ValueError) as error:
            raise WrongKey from error

    def _cipher(self, key: bytes) -> AESGCM:
        return AESGCM(HKDF(SHA256(), KEY_BYTES, salt=None, info=b"vedette secrets at rest, AES-256-GCM").derive(key))


class FernetCbc:
    """AES-128 in CBC mode with HMAC-SHA-256, as secrets were written until
    November 2026. Only read."""

    mark = "gAAAA"

    def encrypt(self, key: bytes, text: str) -> str:
        return self._cipher(key).encrypt(text.encode()).decode("ascii")

    def decrypt(self, key: bytes, encrypted: str) -> str:
        try:
            return self._cipher(key).decrypt(encrypted.encode()).decode()
        except InvalidToken as error:
            raise WrongKey from error

    def _cipher(self, key: bytes) -> Fernet:
        return Fernet(base64.urlsafe_b64encode(key))


CIPHERS: tuple[Cipher, ...] = (Aes256Gcm(), FernetCbc())
"""Ciphers of secrets at rest: the first encrypts, all decrypt."""


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


DIGESTS: tuple[Callable[[str], str], ...] = (_sha256,)
"""Hashes of random secrets, by which they are looked up: the first writes, all are looked for. With
256 random bits they need no salt."""


def digest_of(text: str) -> str:
    """The stored hash of a random secret."""
    return DIGESTS[0](text)


def digests_of(text: str) -> list[str]:
    """All hashes under which it may be stored."""
    return [digest(text) for digest in DIGESTS]
