//! JWT signature: the signatures of `jsonwebtoken`, verified by ring.
//!
//! The library brings either of two other implementations of cryptography. ring is linked for TLS
//! anyway, so this provider spares both. It verifies public-key signatures only: an HMAC cannot be
//! made or verified by it.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: |algorithm, key| {
        let method = Method::of(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
        let verifier: Box<dyn JwtVerifier> = Box::new(RingVerifier {
            algorithm: *algorithm,
            method,
            key: checked(method, key)?,
        });
        Ok(verifier)
    },
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Makes the library use this provider, for the whole process.
pub(crate) fn install() {
    // It is installed already after the first call.
    _ = PROVIDER.install_default();
}

/// A key of the family that the method is for.
fn checked(method: Method, key: &DecodingKey) -> Result<DecodingKey> {
    match (method, key.family()) {
        (Method::Rsa(_), AlgorithmFamily::Rsa) | (Method::Ec(_), AlgorithmFamily::Ec) => {
            Ok(key.clone())
        }
        _ => Err(ErrorKind::InvalidKeyFormat.into()),
    }
}

/// How ring verifies an algorithm.
#[derive(Clone, Copy)]
enum Method {
    Rsa(&'static RsaParameters),
    Ec(&'static dyn VerificationAlgorithm),
}

impl Method {
    fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::RS256 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Self::Rsa(&RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Self::Rsa(&RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Self::Rsa(&RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Self::Ec(&ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Self::Ec(&ECDSA_P384_SHA384_FIXED),
            _ => return None,
        })
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    method: Method,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), SignatureError> {
        let verified = match (self.method, self.key.kind()) {
            (Method::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Method::Ec(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }
            _ => return Err(SignatureError::new()),
        };
        verified.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Whether signatures of an algorithm are accepted. The list is closed. (docs/spec/amqp.md#2.8)
pub(crate) fn is_accepted(algorithm: Algorithm) -> bool {
    Method::of(algorithm).is_some()
}
