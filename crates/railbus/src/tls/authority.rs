//! Authority: a certificate authority of this machine's own, for clients that trust it.
//!
//! It is created once and lasts ten years. Its certificate is valid for this machine's names and
//! addresses, lasts a year, and is renewed when a month is left or when the names have changed.
//!
//! ```text
//! ca.pem       the certificate that clients trust
//! ca.key       readable by its owner alone, like the other key
//! server.pem   the broker's certificate
//! server.key
//! lock         held while any of these is written
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amqp::hexadecimal::hexadecimal;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

use super::certificate_info::CertificateInfo;
use super::files::{self, Access};
use super::signature::is_signed_by;
use super::{Error, Pair};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const AUTHORITY_LASTS: u32 = 3_650;
const CERTIFICATE_LASTS: u32 = 365;
/// How long before its end a certificate is replaced.
const RENEWED_BEFORE: u32 = 30;
/// Clocks of clients may be behind.
const SINCE_BEFORE: u32 = 1;

/// An authority that is there.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
}

impl Authority {
    /// The authority in `directory`, which is made if there is none.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let authority = Self {
            directory: directory.to_owned(),
        };
        let _lock = authority.lock()?;
        if !authority.certificate_path().exists() {
            authority.make()?;
        }
        // An authority that clients may trust is never replaced silently.
        let own = Pair {
            certificate: authority.certificate_path(),
            key: authority.key_path(),
            clients: None,
        };
        own.load()?;
        if !is_signed_by(&own.certificate, &own.certificate)? {
            return Err(Error::Certificate {
                path: own.certificate,
                reason: "its signature is wrong, so the file is damaged; restore it from a copy"
                    .to_owned(),
            });
        }
        Ok(authority)
    }

    /// The certificate that clients trust, in PEM.
    pub fn certificate_path(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// What the broker shows. It may not be there yet.
    pub fn pair(&self) -> Pair {
        Pair {
            certificate: self.directory.join("server.pem"),
            key: self.directory.join("server.key"),
            clients: None,
        }
    }

    fn key_path(&self) -> PathBuf {
        self.directory.join("ca.key")
    }

    /// Issues a certificate for `names` unless there is a valid one at `now`; returns whether it
    /// has.
    pub fn issue(&self, names: &[String], now: SystemTime) -> Result<bool, Error> {
        let _lock = self.lock()?;
        if self.is_good(names, now) {
            return Ok(false);
        }
        let key = KeyPair::generate()?;
        let mut params = params(names, now, CERTIFICATE_LASTS)?;
        params.distinguished_name = common_name("Railbus".to_owned());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer()?)?;
        let pair = self.pair();
        self.write(&pair.key, &key.serialize_pem(), Access::Secret)?;
        self.write(&pair.certificate, &certificate.pem(), Access::Public)?;
        Ok(true)
    }

    /// Whether the certificate that is there is ours, holds for `names` and lasts on.
    fn is_good(&self, names: &[String], now: SystemTime) -> bool {
        let pair = self.pair();
        let (Ok(authority), Ok(info)) = (
            CertificateInfo::read(&self.certificate_path()),
            CertificateInfo::read(&pair.certificate),
        ) else {
            return false;
        };
        let needed_until = seconds(now + DAY * RENEWED_BEFORE);
        info.issuer == authority.subject
            && info.until > needed_until
            && names.iter().all(|name| info.names.contains(name))
            && pair.load().is_ok()
            && matches!(
                is_signed_by(&pair.certificate, &self.certificate_path()),
                Ok(true)
            )
    }

    fn make(&self) -> Result<(), Error> {
        let key = KeyPair::generate()?;
        let certificate = own_params(&key)?.self_signed(&key)?;
        self.write(&self.key_path(), &key.serialize_pem(), Access::Secret)?;
        self.write(&self.certificate_path(), &certificate.pem(), Access::Public)
    }

    /// The issuer: all its parameters follow from the key.
    fn issuer(&self) -> Result<Issuer<'static, KeyPair>, Error> {
        let path = self.key_path();
        let refuse = |reason: String| Error::Key {
            path: path.clone(),
            reason,
        };
        let text = fs::read_to_string(&path).map_err(|error| refuse(error.to_string()))?;
        let key = KeyPair::from_pem(&text).map_err(|error| refuse(error.to_string()))?;
        Ok(Issuer::new(own_params(&key)?, key))
    }

    fn lock(&self) -> Result<fs::File, Error> {
        files::lock(&self.directory).map_err(|error| self.refuse(error))
    }

    fn write(&self, path: &Path, text: &str, access: Access) -> Result<(), Error> {
        files::replace(path, text, access).map_err(|error| self.refuse(error))
    }

    fn refuse(&self, error: std::io::Error) -> Error {
        Error::Directory {
            path: self.directory.clone(),
            error,
        }
    }
}

/// The authority's own certificate, from now on.
fn own_params(key: &KeyPair) -> Result<CertificateParams, Error> {
    let mut params = params(&[], SystemTime::now(), AUTHORITY_LASTS)?;
    // A name of its own distinguishes its certificates from those of another authority.
    let id = hexadecimal(&key.public_key_raw()[1..5]);
    params.distinguished_name = common_name(format!("Railbus local authority {id}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn params(names: &[String], now: SystemTime, days: u32) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::default();
    for name in names {
        let one = CertificateParams::new(vec![name.clone()]);
        let one = one.map_err(|_| Error::Name(name.clone()))?;
        params.subject_alt_names.extend(one.subject_alt_names);
    }
    let (year, month, day) = date(now - DAY * SINCE_BEFORE);
    params.not_before = date_time_ymd(year, month, day);
    let (year, month, day) = date(now + DAY * days);
    params.not_after = date_time_ymd(year, month, day);
    Ok(params)
}

/// Year, month and day in UTC.
fn date(time: SystemTime) -> (i32, u8, u8) {
    let time = Timestamp::try_from(time).unwrap_or_default();
    let date = TimeZone::UTC.to_datetime(time).date();
    (
        date.year().into(),
        date.month().unsigned_abs(),
        date.day().unsigned_abs(),
    )
}

fn common_name(name: String) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Seconds since 1970.
fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::pair::read_chain;

    const NOW: Duration = Duration::from_secs(1_790_000_000);

    fn authority() -> (tempfile::TempDir, Authority) {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::open(&directory.path().join("tls")).unwrap();
        (directory, authority)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn issue(authority: &Authority, wanted: &[&str], days: u32) -> bool {
        let now = UNIX_EPOCH + NOW + DAY * days;
        authority.issue(&names(wanted), now).unwrap()
    }

    #[test]
    fn a_certificate_is_kept_until_a_month_before_its_end() {
        let (_directory, authority) = authority();
        assert!(issue(&authority, &["localhost"], 0));
        assert!(!issue(&authority, &["localhost"], 0));
        assert!(!issue(&authority, &["localhost"], 334));
        assert!(issue(&authority, &["localhost"], 336));
    }

    #[test]
    fn a_certificate_is_made_anew_for_another_name() {
        let (_directory, authority) = authority();
        assert!(issue(&authority, &["localhost", "::1"], 0));
        assert!(!issue(&authority, &["::1"], 0));
        assert!(issue(&authority, &["localhost", "::1", "desk"], 0));
        let info = CertificateInfo::read(&authority.pair().certificate).unwrap();
        assert_eq!(info.names, ["localhost", "::1", "desk"]);
    }

    #[test]
    fn a_damaged_certificate_is_replaced_and_a_damaged_authority_is_not() {
        let (_directory, authority) = authority();
        issue(&authority, &["localhost"], 0);
        let pair = authority.pair();
        fs::write(&pair.key, "no key").unwrap();
        assert!(issue(&authority, &["localhost"], 0));
        fs::write(&pair.certificate, "no certificate").unwrap();
        assert!(issue(&authority, &["localhost"], 0));
        fs::write(authority.key_path(), "no key").unwrap();
        let refusal = Authority::open(&authority.directory).unwrap_err();
        assert!(matches!(refusal, Error::Key { .. }), "{refusal}");
    }

    #[test]
    fn every_flipped_bit_is_heard_or_healed() {
        let (directory, authority) = authority();
        issue(&authority, &["localhost"], 0);
        let copy = directory.path().join("copy.pem");
        fs::copy(authority.certificate_path(), &copy).unwrap();
        let trusted = read_chain(&copy).unwrap();
        let files = ["ca.pem", "ca.key", "server.pem", "server.key", "lock"];
        let files = files.map(|name| authority.directory.join(name));
        let contents = files.each_ref().map(|path| fs::read(path).unwrap());
        for (damaged, content) in files.iter().zip(&contents) {
            for at in 0..content.len() {
                let mut flipped = content.clone();
                flipped[at] ^= 1 << (at % 8);
                fs::write(damaged, flipped).unwrap();
                let place = format!("{} byte {at}", damaged.display());
                match Authority::open(&authority.directory) {
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.contains(damaged.to_str().unwrap()), "{place}: {text}");
                    }
                    Ok(authority) => {
                        issue(&authority, &["localhost"], 0);
                        let pair = authority.pair();
                        pair.load().unwrap();
                        assert!(is_signed_by(&pair.certificate, &copy).unwrap(), "{place}");
                        let own = read_chain(&authority.certificate_path()).unwrap();
                        assert_eq!(own, trusted, "{place}");
                    }
                }
                for (path, content) in files.iter().zip(&contents) {
                    fs::write(path, content).unwrap();
                }
            }
        }
    }

    #[test]
    fn an_authority_lasts_and_its_certificates_go_with_it() {
        let (_directory, first) = authority();
        issue(&first, &["localhost"], 0);
        let before = fs::read_to_string(first.certificate_path()).unwrap();
        let again = Authority::open(&first.directory).unwrap();
        assert_eq!(
            fs::read_to_string(again.certificate_path()).unwrap(),
            before
        );
        fs::remove_file(first.certificate_path()).unwrap();
        let second = Authority::open(&first.directory).unwrap();
        assert!(issue(&second, &["localhost"], 0));
    }

    #[test]
    fn keys_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_directory, authority) = authority();
        issue(&authority, &["localhost"], 0);
        for key in [authority.key_path(), authority.pair().key] {
            assert_eq!(
                fs::metadata(key).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let (_directory, authority) = authority();
        let refusal = authority.issue(&names(&["straße"]), SystemTime::now());
        assert!(matches!(refusal, Err(Error::Name(name)) if name == "straße"));
    }
}
