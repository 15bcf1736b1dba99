//! Dial: opens a connection to a broker, plain or within TLS.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Error;
use crate::remote::connection_string::ConnectionString;

/// How long connecting may take. An answer may take as long as what was asked for does.
const CONNECT: Duration = Duration::from_secs(10);

/// What bytes go over.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The trusted certificates, and the server's name.
pub type Tls = (Arc<ClientConfig>, ServerName<'static>);

/// A connection.
pub type Wire = Box<dyn Stream>;

/// Connects to `broker`. Within TLS the system's certificates are trusted, or those in `ca`.
pub async fn dial(broker: &ConnectionString, ca: Option<&Path>) -> Result<Wire, Error> {
    let tls = tls(broker, ca)?;
    let failed = |reason: String| Error::Connect {
        authority: broker.authority.clone(),
        reason,
    };
    let connecting = async {
        let stream = TcpStream::connect(&broker.authority).await?;
        stream.set_nodelay(true)?;
        let Some((config, name)) = tls else {
            return Ok::<Wire, std::io::Error>(Box::new(stream));
        };
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        Ok(Box::new(stream))
    };
    match tokio::time::timeout(CONNECT, connecting).await {
        Ok(connected) => connected.map_err(|error| failed(error.to_string())),
        Err(_) => Err(failed(format!("no answer within {CONNECT:?}"))),
    }
}

/// The trusted certificates and the server's name, if the broker uses TLS.
pub fn tls(broker: &ConnectionString, ca: Option<&Path>) -> Result<Option<Tls>, Error> {
    match broker.tls {
        true => Ok(Some((config(ca)?, name(broker)?))),
        false => Ok(None),
    }
}

fn name(broker: &ConnectionString) -> Result<ServerName<'static>, Error> {
    let host = broker.host().to_owned();
    ServerName::try_from(host).map_err(|error| Error::Connect {
        authority: broker.authority.clone(),
        reason: error.to_string(),
    })
}

fn config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => trust(path, &mut roots)?,
        None => {
            // A machine without certificates trusts no server; the handshake reports that.
            let found = rustls_native_certs::load_native_certs().certs;
            roots.add_parsable_certificates(found);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them");
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

fn trust(path: &Path, roots: &mut RootCertStore) -> Result<(), Error> {
    let unusable = |reason: String| Error::Certificates {
        path: path.to_owned(),
        reason,
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(error.to_string()))?;
    if certificates.is_empty() {
        return Err(unusable("there is no certificate in PEM in it".to_owned()));
    }
    for certificate in certificates {
        roots
            .add(certificate)
            .map_err(|error| unusable(error.to_string()))?;
    }
    Ok(())
}
