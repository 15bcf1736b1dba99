//! Settings: the settings of `railbus serve`, from flags, environment, file and defaults.
//!
//! A flag wins over the environment, the environment over `railbus.toml`, the file over the
//! default.

mod limits;
mod telemetry;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use broker::{BrokerSettings, Tier};
use rocks::Durability;

use crate::arguments::ServeArguments;
use crate::command_error::CommandError;
use crate::config::{
    self, Auth, Entities, LimitsConfig, LogFormat, NamespaceName, RailbusToml, Size, read_entities,
    read_railbus_toml,
};
use crate::serve::data_directory::Location;
use crate::serve::entropy;
use crate::serve::host_name::HostName;
use crate::serve::issuers::issuers;
use crate::serve::keys::{ConnectionKey, Keys};
use crate::serve::stamp;
use crate::serve::stamp::Stamp;
use crate::tls::{self, Pair};
use limits::{endpoint, forward_retry, limits, transactions};
use telemetry::Telemetry;

/// The default settings file.
const USUAL_FILE: &str = "railbus.toml";
/// The default memory for the store and the cache of bodies together.
const MEMORY: u64 = 128 << 20;
/// What the scrubber reads in a second by default.
const SCRUB_BYTES: u64 = 4 << 20;
/// The default maximum message size of a premium namespace. (docs/spec/entities.md#2.1)
const PREMIUM_MESSAGE_SIZE: u64 = 1 << 20;
/// Where the official emulator serves HTTP.
const HTTP_PORT: u16 = 5_300;
/// Where a namespace of the cloud serves HTTP and WebSocket.
const HTTPS_PORT: u16 = 443;

/// Everything `railbus serve` needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    pub data: Location,
    pub log_format: LogFormat,
    /// The file of the audit log; it is part of the log otherwise.
    pub audit_log: Option<PathBuf>,
    pub store: rocks::Options,
    pub tls: tls::Source,
    pub server: server::Options,
    /// The name that it has in the place of a namespace in the cloud.
    pub host: Option<HostName>,
    /// None if there are issuers alone.
    pub connection_key: Option<ConnectionKey>,
    /// The limits of `railbus.toml`.
    pub limits: LimitsConfig,
    /// The same.
    pub auth: Auth,
    /// What all this was read from, whether it is there or not.
    pub files: Vec<PathBuf>,
    /// Of each of them, before it was read.
    pub stamps: Vec<Option<Stamp>>,
    /// What a user should know about the configuration, although it is accepted.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Puts the settings together.
    pub fn resolve(arguments: &ServeArguments) -> Result<Self, CommandError> {
        let file = config_file(arguments);
        let named = file.clone().unwrap_or_else(|| PathBuf::from(USUAL_FILE));
        let (mut files, mut stamps) = (vec![named.clone()], vec![stamp::of(&named)]);
        let (config, of_settings) = match &file {
            Some(file) => read_railbus_toml(file)?,
            None => Default::default(),
        };
        let resolve = |path: &PathBuf| resolve_relative(file.as_deref(), path);
        let host = arguments.host.clone().or_else(|| config.host.clone());
        let listen = listen(arguments, &config, host.as_ref())?;
        let allow_development_key = arguments.allow_development_key || config.allow_development_key;
        let mut keys = Keys::new(&config.auth, &listen, allow_development_key)?;
        keys.rules.issuers = issuers(&config.auth, resolve)?;
        let tls = tls_source(arguments, &config, resolve, &listen, host.as_ref())?;
        // Its names count, so a change of it is one of the configuration.
        if let tls::Source::Files(pair) = &tls {
            stamps.push(stamp::of(&pair.certificate));
            files.push(pair.certificate.clone());
        }
        let as_host = host.iter().map(|host| host.as_str().to_owned());
        keys.rules.host_names = tls.host_names().into_iter().chain(as_host).collect();
        let entities_file = arguments
            .entities
            .clone()
            .or_else(|| config.entities.as_ref().map(resolve));
        let entities_file = entities_file.or_else(emulator_config_path);
        stamps.extend(entities_file.iter().map(|file| stamp::of(file)));
        files.extend(entities_file.clone());
        let entities = entities(entities_file, of_settings, config.sku.unwrap_or_default())?;
        let memory = check_memory(arguments, &config)?;
        let data = data(arguments, &config, resolve);
        let mut connections = connections(arguments, &config)?;
        let broker = BrokerSettings {
            max_message_size: connections.max_message_size,
            ..broker(arguments, &config, memory / 8, &data)?
        };
        let admin = admin(&config, connections.max_message_size, host.as_ref());
        connections.namespace.clone_from(&admin.namespace);
        let telemetry = Telemetry::resolve(&config.telemetry, |name| std::env::var(name).ok())?;
        let warnings = entities.warnings.into_iter().chain(telemetry.warnings);
        Ok(Self {
            store: rocks::Options {
                durability: durability(arguments, &config, &data),
                memory_bytes: memory / 4 * 3,
                reserve_bytes: config.limits.reserve_bytes.map(|size| size.0),
                repair: arguments.repair,
                scrub_bytes: scrub_bytes(&config, &data),
            },
            tls,
            data,
            log_format: arguments
                .log_format
                .or(config.log_format)
                .unwrap_or_default(),
            audit_log: config.audit_log.as_ref().map(resolve),
            server: server::Options {
                listen,
                limits: limits(&config.limits),
                admin,
                connections,
                rules: keys.rules,
                development_issuer: None,
                certificate: None,
                plain: arguments.plain.or(config.plain).unwrap_or_default(),
                backup_directory: choose_path(&arguments.backup_dir, &config.backup_dir, resolve),
                telemetry: telemetry.options,
                virtual_clock: arguments.virtual_clock || config.virtual_clock,
                broker,
                queues: entities.queues,
                topics: entities.topics,
                policies: entities.policies,
                faults: entities.faults,
                namespaces: entities.namespaces,
            },
            host,
            connection_key: keys.shown,
            limits: config.limits,
            auth: config.auth,
            files,
            stamps,
            warnings: warnings.collect(),
        })
    }
}

/// The file that was named, or the one that is there.
fn config_file(arguments: &ServeArguments) -> Option<PathBuf> {
    let usual = || Some(PathBuf::from(USUAL_FILE)).filter(|file| file.is_file());
    arguments.config.clone().or_else(usual)
}

/// Paths in a file are relative to it.
fn resolve_relative(file: Option<&Path>, path: &Path) -> PathBuf {
    file.and_then(Path::parent)
        .map_or_else(|| path.to_owned(), |directory| directory.join(path))
}

/// The file of this variable, by which the official emulator's image is configured.
fn emulator_config_path() -> Option<PathBuf> {
    std::env::var_os("CONFIG_PATH")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

fn listen(
    arguments: &ServeArguments,
    config: &RailbusToml,
    host: Option<&HostName>,
) -> Result<Vec<SocketAddr>, config::Error> {
    let http_port = emulator_http_port()?;
    let configured = [&arguments.listen, &config.listen];
    let Some(listen) = configured.into_iter().find(|listen| !listen.is_empty()) else {
        let ports = [5_672, 5_671, http_port.unwrap_or(HTTP_PORT)].into_iter();
        let ports = ports.chain(host.map(|_| HTTPS_PORT));
        return Ok(ports
            .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
            .collect());
    };
    Ok(with_port(listen.clone(), http_port))
}

/// `listen`, and `port` beside the first of them if none has it.
fn with_port(mut listen: Vec<SocketAddr>, port: Option<u16>) -> Vec<SocketAddr> {
    let Some(port) = port.filter(|port| listen.iter().all(|address| address.port() != *port))
    else {
        return listen;
    };
    let second = listen
        .first()
        .map(|first| SocketAddr::new(first.ip(), port));
    listen.extend(second);
    listen
}

/// The port of this variable, by which the official emulator's image is configured.
fn emulator_http_port() -> Result<Option<u16>, config::Error> {
    const NAME: &str = "EMULATOR_HTTP_PORT";
    let Ok(value) = std::env::var(NAME) else {
        return Ok(None);
    };
    value
        .parse()
        .map(Some)
        .map_err(|_| config::Error::Argument {
            name: NAME,
            value,
            expected: "a port",
        })
}

/// The entities of `railbus.toml` and of the entities file. Where both name one, the entities file
/// wins.
fn entities(
    entities_file: Option<PathBuf>,
    of_settings: Entities,
    tier: Tier,
) -> Result<Entities, config::Error> {
    let mut entities = match entities_file {
        Some(file) => read_entities(&file, tier)?,
        None => Entities::default(),
    };
    entities.add(of_settings);
    let missing = entities.missing_targets();
    entities.warnings.extend(missing);
    Ok(entities)
}

fn data(
    arguments: &ServeArguments,
    config: &RailbusToml,
    resolve: impl Fn(&PathBuf) -> PathBuf,
) -> Location {
    if arguments.ephemeral {
        return Location::Ephemeral;
    }
    match &arguments.data_dir {
        Some(path) => Location::Lasting(path.clone()),
        None if config.ephemeral => Location::Ephemeral,
        None => Location::Lasting(
            config
                .data_dir
                .as_ref()
                .map_or_else(|| PathBuf::from("railbus-data"), resolve),
        ),
    }
}

fn choose_path(
    flag: &Option<PathBuf>,
    key: &Option<PathBuf>,
    resolve: impl Fn(&PathBuf) -> PathBuf,
) -> Option<PathBuf> {
    flag.clone().or_else(|| key.as_ref().map(resolve))
}

/// Files of its owner's, or a local authority.
fn tls_source(
    arguments: &ServeArguments,
    config: &RailbusToml,
    resolve: impl Fn(&PathBuf) -> PathBuf,
    listen: &[SocketAddr],
    host: Option<&HostName>,
) -> Result<tls::Source, tls::Error> {
    let choose = |flag: &_, key: &_| choose_path(flag, key, &resolve);
    let certificate = choose(&arguments.tls_certificate, &config.tls_certificate);
    let clients = config.tls_client_authority.as_ref().map(&resolve);
    match (certificate, choose(&arguments.tls_key, &config.tls_key)) {
        (Some(certificate), Some(key)) => Ok(tls::Source::Files(Pair {
            certificate,
            key,
            clients,
        })),
        (None, None) => {
            let more = match &*arguments.tls_name {
                [] => config.tls_name.as_slice(),
                names => names,
            };
            let more = more.iter().cloned();
            let more: Vec<_> = more.chain(host.map(HostName::to_string)).collect();
            Ok(tls::Source::Local {
                directory: choose(&arguments.tls_dir, &config.tls_dir),
                names: tls::machine_names(listen, &more),
                clients,
            })
        }
        _ => Err(tls::Error::Half),
    }
}

/// Temporary data needs no protection from a power cut by default.
fn durability(arguments: &ServeArguments, config: &RailbusToml, data: &Location) -> Durability {
    let default = match data {
        Location::Ephemeral => Durability::Buffered,
        Location::Lasting(_) => Durability::Synced,
    };
    arguments
        .durability
        .or(config.durability)
        .unwrap_or(default)
}

/// Temporary data is not at rest for long.
fn scrub_bytes(config: &RailbusToml, data: &Location) -> u64 {
    match data {
        Location::Ephemeral => 0,
        Location::Lasting(_) => config.limits.scrub_bytes.map_or(SCRUB_BYTES, |size| size.0),
    }
}

fn check_memory(arguments: &ServeArguments, config: &RailbusToml) -> Result<u64, config::Error> {
    let flag = flag::<{ 16 << 20 }, { 1 << 40 }>(
        arguments.memory,
        "--memory (or RAILBUS_MEMORY)",
        "16MiB to 1TiB",
    )?;
    Ok(flag.or(config.memory).map_or(MEMORY, |size| size.0))
}

fn flag<const LEAST: u64, const MOST: u64>(
    size: Option<bytesize::ByteSize>,
    name: &'static str,
    expected: &'static str,
) -> Result<Option<Size<LEAST, MOST>>, config::Error> {
    let check = |size: bytesize::ByteSize| {
        Size::check(size).map_err(|_| config::Error::Argument {
            name,
            value: size.to_string(),
            expected,
        })
    };
    size.map(check).transpose()
}

fn admin(config: &RailbusToml, max_message_size: u64, host: Option<&HostName>) -> admin::Settings {
    let default = admin::Settings::default();
    let namespace = config.namespace.clone().map(NamespaceName::into_string);
    let namespace = namespace.or_else(|| host.map(|host| host.label().to_owned()));
    admin::Settings {
        namespace: namespace.unwrap_or(default.namespace),
        tier: config.sku.unwrap_or_default(),
        max_message_size,
    }
}

fn connections(
    arguments: &ServeArguments,
    config: &RailbusToml,
) -> Result<servicebus::Settings, config::Error> {
    let default = servicebus::Settings::default();
    let name = "--max-message-size (or RAILBUS_MAX_MESSAGE_SIZE)";
    let max_message_size =
        flag(arguments.max_message_size, name, "1KiB to 100MiB")?.or(config.max_message_size);
    let batch_delete = config.limits.messages_per_batch_delete;
    Ok(servicebus::Settings {
        max_message_size: match (max_message_size, config.sku) {
            (Some(size), _) => size.0,
            (None, Some(Tier::Premium)) => PREMIUM_MESSAGE_SIZE,
            (None, _) => default.max_message_size,
        },
        tier: config.sku.unwrap_or_default(),
        batch_delete: batch_delete.map_or(default.batch_delete, |count| {
            usize::try_from(count.0).unwrap_or(usize::MAX)
        }),
        idle_connection: config
            .limits
            .unused_connection_time_out
            .map(|value| u32::try_from(value.0).unwrap_or(u32::MAX))
            .or(default.idle_connection),
        authentication_time_out: config
            .limits
            .authentication_time_out
            .map_or(default.authentication_time_out, |value| {
                u32::try_from(value.0).unwrap_or(u32::MAX)
            }),
        cross_entity: arguments
            .transactions_cross_entity
            .or(config.transactions.cross_entity)
            .unwrap_or_default(),
        dynamic_nodes: arguments
            .dynamic_nodes
            .or(config.dynamic_nodes)
            .unwrap_or_default(),
        anonymous_relay: config.anonymous_relay.unwrap_or(true),
        jms: config.jms.unwrap_or(config.sku == Some(Tier::Premium)),
        endpoint: endpoint(&config.limits),
        ..default
    })
}

fn broker(
    arguments: &ServeArguments,
    config: &RailbusToml,
    body_bytes: u64,
    data: &Location,
) -> Result<BrokerSettings, CommandError> {
    let default = BrokerSettings::default();
    let output_buffer = config.limits.outgoing_bytes_per_connection;
    Ok(BrokerSettings {
        tier: config.sku.unwrap_or_default(),
        seed: entropy::seed()?,
        expiry: arguments.expiry.or(config.expiry).unwrap_or_default(),
        locks_on_disconnect: arguments
            .locks_on_disconnect
            .or(config.locks_on_disconnect)
            .unwrap_or_default(),
        session_count_on_disconnect: arguments
            .session_count_on_disconnect
            .or(config.session_count_on_disconnect)
            .unwrap_or_default(),
        forward_failures: arguments
            .forward_failures
            .or(config.forward_failures)
            .unwrap_or_default(),
        keep_undead_lettered: config.keep_undead_lettered.unwrap_or_default(),
        forward_retry: forward_retry(&config.limits),
        body_bytes: usize::try_from(body_bytes).unwrap_or(usize::MAX),
        output_buffer_bytes: output_buffer.map_or(default.output_buffer_bytes, |size| {
            usize::try_from(size.0).unwrap_or(usize::MAX)
        }),
        nodes_per_connection: (config.limits.dynamic_nodes_per_connection)
            .map_or(default.nodes_per_connection, |count| {
                usize::try_from(count.0).unwrap_or(usize::MAX)
            }),
        node_bytes: (config.limits.dynamic_node_bytes).map_or(default.node_bytes, |size| size.0),
        transactions: transactions(&config.limits),
        lineage: config.lineage.unwrap_or(*data == Location::Ephemeral),
        lineage_bytes: config
            .limits
            .lineage_bytes
            .map_or(default.lineage_bytes, |size| {
                usize::try_from(size.0).unwrap_or(usize::MAX)
            }),
        ..default
    })
}

#[cfg(test)]
mod tests;
