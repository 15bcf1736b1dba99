//! Certificate reloader: replaces the certificate while the broker runs.
//!
//! It polls the files instead of watching them: certificates are often replaced through links, and
//! on file systems without notifications.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use tokio::sync::{mpsc, watch};

use super::{Authority, Error, Pair};
use crate::serve::stamp;

/// The interval between checks of configured files.
const FILES_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between checks of a local certificate's expiry.
const LOCAL_CHECK_INTERVAL: Duration = Duration::from_secs(3_600);

/// The result of a check.
#[derive(Debug)]
pub enum CheckResult {
    Nothing,
    /// A certificate to show from now on.
    New(Box<ServerConfig>),
    /// A certificate that cannot be used; reported once for each reason.
    Unusable(Error),
}

/// The source of the certificate.
#[derive(Debug)]
pub struct CertificateSource {
    source: SourceKind,
    /// The version of the files in use.
    stamp: Stamp,
    /// Why the present version is not in use.
    last_error: Option<String>,
}

#[derive(Debug)]
enum SourceKind {
    Files(Pair),
    Local {
        authority: Authority,
        names: Vec<String>,
        /// The authorities of client certificates.
        clients: Option<PathBuf>,
    },
}

/// Identifies a version of the files.
type Stamp = [Option<stamp::Stamp>; 3];

impl CertificateSource {
    /// The certificate of configured files.
    pub fn files(pair: Pair) -> Result<(ServerConfig, Self), Error> {
        Self::new(SourceKind::Files(pair))
    }

    /// A certificate by `authority` for this machine and `names`.
    pub fn local(
        authority: Authority,
        names: Vec<String>,
        clients: Option<PathBuf>,
    ) -> Result<(ServerConfig, Self), Error> {
        authority.issue(&names, SystemTime::now())?;
        Self::new(SourceKind::Local {
            authority,
            names,
            clients,
        })
    }

    fn new(source: SourceKind) -> Result<(ServerConfig, Self), Error> {
        let pair = source.pair();
        let stamp = stamp(&pair);
        let config = pair.load()?;
        let certificate_source = Self {
            source,
            stamp,
            last_error: None,
        };
        Ok((config, certificate_source))
    }

    fn interval(&self) -> Duration {
        match self.source {
            SourceKind::Files(_) => FILES_CHECK_INTERVAL,
            SourceKind::Local { clients: None, .. } => LOCAL_CHECK_INTERVAL,
            SourceKind::Local { .. } => FILES_CHECK_INTERVAL,
        }
    }

    /// Checks once, at `now`.
    pub fn check(&mut self, now: SystemTime) -> CheckResult {
        if let SourceKind::Local {
            authority, names, ..
        } = &self.source
            && let Err(error) = authority.issue(names, now)
        {
            return self.report_once(error);
        }
        let pair = self.source.pair();
        let stamp = stamp(&pair);
        if stamp == self.stamp {
            self.last_error = None;
            return CheckResult::Nothing;
        }
        match pair.load() {
            Ok(config) => {
                self.stamp = stamp;
                self.last_error = None;
                CheckResult::New(Box::new(config))
            }
            Err(error) => self.report_once(error),
        }
    }

    fn report_once(&mut self, error: Error) -> CheckResult {
        let text = error.to_string();
        if self.last_error.as_ref() == Some(&text) {
            return CheckResult::Nothing;
        }
        self.last_error = Some(text);
        CheckResult::Unusable(error)
    }
}

impl SourceKind {
    fn pair(&self) -> Pair {
        match self {
            Self::Files(pair) => pair.clone(),
            Self::Local {
                authority, clients, ..
            } => Pair {
                clients: clients.clone(),
                ..authority.pair()
            },
        }
    }
}

fn stamp(pair: &Pair) -> Stamp {
    let clients = pair.clients.as_ref();
    [
        stamp::of(&pair.certificate),
        stamp::of(&pair.key),
        clients.and_then(|clients| stamp::of(clients)),
    ]
}

/// A request to the reloader.
#[derive(Debug)]
pub enum ReloadRequest {
    /// To check now.
    Check,
    /// To use another certificate, and to check another source from now on.
    Replace(Box<ServerConfig>, Box<CertificateSource>),
}

/// Sends requests to the reloader.
pub type ReloadSender = mpsc::Sender<ReloadRequest>;

/// Checks the certificate until the server is gone.
#[derive(Debug)]
pub struct CertificateReloader {
    certificate_source: CertificateSource,
    sender: watch::Sender<Arc<ServerConfig>>,
    calls: mpsc::Receiver<ReloadRequest>,
}

impl CertificateReloader {
    /// A reloader of the certificate that `sender` publishes.
    pub fn new(
        certificate_source: CertificateSource,
        sender: watch::Sender<Arc<ServerConfig>>,
    ) -> (Self, ReloadSender) {
        let (reload_sender, calls) = mpsc::channel(1);
        let reloader = Self {
            certificate_source,
            sender,
            calls,
        };
        (reloader, reload_sender)
    }

    /// Replaces the certificate whenever there is another one.
    pub async fn run(mut self) {
        loop {
            let called =
                tokio::time::timeout(self.certificate_source.interval(), self.calls.recv()).await;
            if self.sender.is_closed() {
                return;
            }
            match called {
                // All senders are gone, so the server is about to end.
                Ok(None) => return,
                Ok(Some(ReloadRequest::Replace(config, certificate_source))) => {
                    self.certificate_source = *certificate_source;
                    self.show(config);
                    continue;
                }
                Ok(Some(ReloadRequest::Check)) | Err(_) => {}
            }
            // A file system may take its time.
            let looked = tokio::task::spawn_blocking(move || {
                let found = self.certificate_source.check(SystemTime::now());
                (self, found)
            });
            let Ok((reloader, found)) = looked.await else {
                tracing::error!("the TLS certificate is no longer watched for changes");
                return;
            };
            self = reloader;
            match found {
                CheckResult::Nothing => {}
                CheckResult::New(config) => self.show(config),
                CheckResult::Unusable(error) => {
                    tracing::error!("{error}; the current TLS certificate is kept");
                }
            }
        }
    }

    fn show(&self, config: Box<ServerConfig>) {
        self.sender.send_replace(Arc::from(config));
        tracing::info!("the TLS certificate was replaced");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    struct Fixture {
        _directory: tempfile::TempDir,
        pair: Pair,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let pair = Pair {
                certificate: directory.path().join("c.pem"),
                key: directory.path().join("k.pem"),
                clients: None,
            };
            let site = Self {
                _directory: directory,
                pair,
            };
            site.write(&site.make());
            site
        }

        /// A certificate and its key.
        fn make(&self) -> (String, String) {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
        }

        fn write(&self, (certificate, key): &(String, String)) {
            write(&self.pair.certificate, certificate);
            write(&self.pair.key, key);
        }
    }

    /// Replaces a file by one that is a second newer: file systems may count in less fine steps.
    fn write(path: &Path, text: &str) {
        let before = fs::metadata(path).and_then(|file| file.modified());
        fs::write(path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        let newer = before.unwrap_or(SystemTime::UNIX_EPOCH) + Duration::from_secs(1);
        file.set_modified(newer).unwrap();
    }

    #[test]
    fn a_new_pair_of_files_is_taken_once() {
        let site = Fixture::new();
        let (_, mut certificate_source) = CertificateSource::files(site.pair.clone()).unwrap();
        assert!(matches!(
            certificate_source.check(SystemTime::now()),
            CheckResult::Nothing
        ));
        site.write(&site.make());
        assert!(matches!(
            certificate_source.check(SystemTime::now()),
            CheckResult::New(_)
        ));
        assert!(matches!(
            certificate_source.check(SystemTime::now()),
            CheckResult::Nothing
        ));
    }

    #[test]
    fn a_key_that_does_not_belong_is_complained_of_once_and_the_old_one_stays() {
        let site = Fixture::new();
        let (_, mut certificate_source) = CertificateSource::files(site.pair.clone()).unwrap();
        let (certificate, key) = site.make();
        write(&site.pair.certificate, &certificate);
        let found = certificate_source.check(SystemTime::now());
        assert!(
            matches!(found, CheckResult::Unusable(Error::Mismatch { .. })),
            "{found:?}"
        );
        assert!(matches!(
            certificate_source.check(SystemTime::now()),
            CheckResult::Nothing
        ));
        write(&site.pair.key, &key);
        assert!(matches!(
            certificate_source.check(SystemTime::now()),
            CheckResult::New(_)
        ));
    }

    #[test]
    fn other_authorities_of_clients_are_taken_and_a_file_without_one_is_not() {
        let mut site = Fixture::new();
        let clients = site.pair.certificate.with_file_name("clients.pem");
        write(&clients, &site.make().0);
        site.pair.clients = Some(clients.clone());
        let (_, mut certificate_source) = CertificateSource::files(site.pair.clone()).unwrap();
        write(&clients, &site.make().0);
        let found = certificate_source.check(SystemTime::now());
        assert!(matches!(found, CheckResult::New(_)), "{found:?}");
        write(&clients, "");
        let found = certificate_source.check(SystemTime::now());
        assert!(
            matches!(found, CheckResult::Unusable(Error::Certificate { .. })),
            "{found:?}"
        );
    }

    #[test]
    fn files_that_can_not_be_used_are_refused_by_name() {
        let check = |change: &dyn Fn(&Fixture), expected: &str| {
            let site = Fixture::new();
            change(&site);
            let refusal = CertificateSource::files(site.pair.clone())
                .unwrap_err()
                .to_string();
            let directory = format!("{}/", site.pair.key.parent().unwrap().display());
            assert_eq!(refusal.replace(&directory, ""), expected);
        };
        check(
            &|site| fs::write(&site.pair.key, site.make().1).unwrap(),
            "the TLS key k.pem does not belong to the certificate c.pem",
        );
        check(
            &|site| fs::write(&site.pair.key, "hush").unwrap(),
            "the TLS key k.pem cannot be used: there is no private key in PEM in it",
        );
        check(
            &|site| fs::remove_file(&site.pair.key).unwrap(),
            "the TLS key k.pem cannot be used: No such file or directory (os error 2)",
        );
        check(
            &|site| fs::write(&site.pair.certificate, "").unwrap(),
            "the TLS certificate c.pem cannot be used: there is no certificate in PEM in it",
        );
    }

    #[test]
    fn a_local_certificate_is_made_anew_before_it_runs_out() {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::open(directory.path()).unwrap();
        let (_, mut certificate_source) =
            CertificateSource::local(authority, vec!["localhost".to_owned()], None).unwrap();
        let now = SystemTime::now();
        assert!(matches!(
            certificate_source.check(now),
            CheckResult::Nothing
        ));
        let later = now + Duration::from_secs(340 * 24 * 60 * 60);
        assert!(matches!(
            certificate_source.check(later),
            CheckResult::New(_)
        ));
    }
}
