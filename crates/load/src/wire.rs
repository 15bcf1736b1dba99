//! Wire: the byte stream of a connection, plain or within TLS. Nothing waits here.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::Error;

/// The name that a broker's own certificate holds for.
const NAME: &str = "localhost";
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// The certificates that TLS connections trust.
#[derive(Clone, Debug)]
pub struct TrustStore {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TrustStore {
    /// Trusts the certificates of `pem` and what they have signed, on this machine.
    pub fn new(pem: &[u8]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(Error::Certificates)?)?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?;
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        Ok(Self::of(
            Arc::new(config),
            ServerName::try_from(NAME).expect("it is a name"),
        ))
    }

    /// Trusts the certificates of `config`, for the name `name`.
    pub fn of(config: Arc<ClientConfig>, name: ServerName<'static>) -> Self {
        Self { config, name }
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
    /// Connects to the first of `addresses` that answers, within TLS if `trust` is given; the
    /// handshake goes on with the first reads and writes.
    pub fn connect(addresses: &[SocketAddr], trust: Option<&TrustStore>) -> Result<Self, Error> {
        let stream = dial(addresses).map_err(Error::Connect)?;
        let Some(trust) = trust else {
            return Ok(Self::Bare(stream));
        };
        let client = ClientConnection::new(Arc::clone(&trust.config), trust.name.clone())?;
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
    pub fn has_unsent(&self) -> bool {
        matches!(self, Self::Secured(_))
    }
}

fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no address");
    for address in addresses {
        match TcpStream::connect_timeout(address, CONNECT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
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
