//! Wire: what a connection goes over, bare or within TLS. Nothing waits here.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The name that a broker's own certificate holds for.
const NAME: &str = "localhost";

/// Whom connections trust that go within TLS.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts the certificates of `pem` and what they have signed.
    pub fn new(pem: &[u8]) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.context("reading the authority")?)?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?;
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

/// One connection's bytes.
pub enum Wire {
    /// As they are.
    Bare(TcpStream),
    /// Within TLS.
    Secured(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Wire {
    /// Connects to `address`, within TLS if it is said whom to trust; the handshake goes on with
    /// whatever is read or written.
    pub fn connect(address: SocketAddr, trust: Option<&Trust>) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let Some(trust) = trust else {
            return Ok(Self::Bare(stream));
        };
        let name = ServerName::try_from(NAME)?;
        let client = ClientConnection::new(Arc::clone(&trust.0), name)?;
        Ok(Self::Secured(Box::new(StreamOwned::new(client, stream))))
    }

    /// The socket, to wait for it.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Bare(stream) => stream,
            Self::Secured(stream) => &stream.sock,
        }
    }

    /// Whether there may be more to read although the socket has nothing.
    pub fn holds_back(&self) -> bool {
        matches!(self, Self::Secured(_))
    }
}

impl Read for Wire {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Bare(stream) => stream.read(bytes),
            Self::Secured(stream) => stream.read(bytes),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Bare(stream) => stream.write(bytes),
            Self::Secured(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Bare(stream) => stream.flush(),
            Self::Secured(stream) => stream.flush(),
        }
    }
}
