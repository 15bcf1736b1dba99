//! Issuers: those of the configuration, as access rules know them.
//!
//! The keys of a file are read here, so a broker does not start with a file that has none. Those
//! at a URL are loaded once it runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::issuer::SERVICE_BUS_AUDIENCE;
use access::{Grant, GrantClaim, Issuer, IssuerKeys, KeySet, KeySource};
use broker::Wall;

use crate::command_error::CommandError;
use crate::config::{Auth, AuthGrant, AuthIssuer, EntityPath, Right};

/// Tolerance for the times in tokens by default. (docs/spec/amqp.md#2.8)
const LEEWAY_MS: u64 = 60_000;
/// Where the discovery document is, below the name of the issuer.
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// The issuers of `[auth]`.
pub fn issuers(
    auth: &Auth,
    resolve: impl Fn(&PathBuf) -> PathBuf,
) -> Result<Vec<Issuer>, CommandError> {
    let issuers = auth.issuers.iter();
    issuers.map(|issuer| one(issuer, &resolve)).collect()
}

fn one(issuer: &AuthIssuer, resolve: impl Fn(&PathBuf) -> PathBuf) -> Result<Issuer, CommandError> {
    let source = source(issuer, resolve);
    let keys = match &source {
        KeySource::File(path) => read(path)?,
        _ => IssuerKeys::missing(),
    };
    let audiences = match &*issuer.audiences {
        [] => vec![SERVICE_BUS_AUDIENCE.to_owned()],
        audiences => audiences.to_vec(),
    };
    let grants = match &*issuer.grants {
        [] => Grant::usual(),
        grants => grants.iter().filter_map(grant).collect(),
    };
    Ok(Issuer {
        name: issuer.issuer.clone(),
        audiences,
        leeway_ms: issuer.leeway.map_or(LEEWAY_MS, |leeway| leeway.0),
        grants,
        is_for_loopback: false,
        source,
        keys: Arc::new(keys),
    })
}

fn source(issuer: &AuthIssuer, resolve: impl Fn(&PathBuf) -> PathBuf) -> KeySource {
    match (&issuer.jwks_file, &issuer.jwks_url, &issuer.discovery) {
        (Some(file), _, _) => KeySource::File(resolve(file)),
        (_, Some(url), _) => KeySource::Url(url.clone()),
        (_, _, Some(url)) => KeySource::Discovery(url.clone()),
        _ => {
            let name = issuer.issuer.trim_end_matches('/');
            KeySource::Discovery(format!("{name}{DISCOVERY}"))
        }
    }
}

/// A file is watched, so an unknown key is no reason to read it again.
fn read(path: &Path) -> Result<IssuerKeys, CommandError> {
    let text = std::fs::read(path).map_err(|error| CommandError::Read {
        path: path.to_owned(),
        error,
    })?;
    let refuse = |reason: String| CommandError::IssuerKeys {
        path: path.to_owned(),
        reason,
    };
    let keys = KeySet::parse(&text).map_err(|error| refuse(error.to_string()))?;
    if keys.is_empty() {
        let reason = "it has no key that can verify RS256, RS384, RS512, PS256, PS384, PS512, ES256 or ES384";
        return Err(refuse(reason.to_owned()));
    }
    let known = IssuerKeys::missing();
    known.replace(keys, Wall(u64::MAX));
    Ok(known)
}

/// The configuration has been checked: a grant has one claim.
fn grant(grant: &AuthGrant) -> Option<Grant> {
    let claim = match (&grant.role, &grant.scope, &grant.group, &grant.subject) {
        (Some(role), ..) => GrantClaim::Role(role.clone()),
        (_, Some(scope), ..) => GrantClaim::Scope(scope.clone()),
        (_, _, Some(group), _) => GrantClaim::Group(group.clone()),
        (_, _, _, subject) => GrantClaim::Subject(subject.clone()?),
    };
    Some(Grant {
        claim,
        rights: Right::all(&grant.rights),
        entity: grant.entity.clone().map(EntityPath::into_string),
    })
}
