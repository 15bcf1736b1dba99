//! TLS in the hands of a test: a blocking client that trusts what it is told to.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::peer;

/// A client's end of TLS.
pub type Secured = StreamOwned<ClientConnection, TcpStream>;

/// What a client trusts.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts the certificates of `pem` and what they have signed.
    ///
    /// # Panics
    /// When it is no PEM.
    #[must_use]
    pub fn new(pem: &str) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots
                .add(certificate.expect("PEM"))
                .expect("a certificate of an authority");
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_safe_default_protocol_versions()
            .expect("ring does both versions");
        Self(Arc::new(
            builder.with_root_certificates(roots).with_no_client_auth(),
        ))
    }

    /// Connects to `address`, which has to show a certificate for `name`; the handshake is done
    /// with the first byte that is read or written.
    ///
    /// # Panics
    /// When no broker listens.
    #[must_use]
    pub fn connect(&self, address: SocketAddr, name: &str) -> Secured {
        self.secure(peer::connect(address), name)
    }

    /// TLS on a connection that is there.
    ///
    /// # Panics
    /// When `name` is none.
    #[must_use]
    pub fn secure(&self, stream: TcpStream, name: &str) -> Secured {
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let client = ClientConnection::new(Arc::clone(&self.0), name).expect("a valid setup");
        StreamOwned::new(client, stream)
    }
}
