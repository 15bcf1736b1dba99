//! Telemetry: the collector, from `[telemetry]` and the standard variables of OpenTelemetry.
//!
//! A variable wins over the file, and one of a signal over that of both. Telemetry is off without
//! an endpoint, and with `OTEL_SDK_DISABLED`. Only OTLP over HTTP is spoken: a variable that asks
//! for gRPC turns what it is about off, with a warning. A variable whose value is not supported
//! otherwise has a warning alone. (docs/telemetry.md)

mod sampler;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use server::{Collector, OtlpProtocol, TelemetryOptions, is_postable};

use crate::config::{self, TelemetryConfig};
use crate::tls;

const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TIME_OUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const COMPRESSION: &str = "OTEL_EXPORTER_OTLP_COMPRESSION";
const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";
/// Variables that would have the broker show a certificate.
const CLIENT_CERTIFICATES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CLIENT_KEY",
];
const REQUEST_TIME_OUT: Duration = Duration::from_secs(10);
const SCHEDULE_DELAY: Duration = Duration::from_secs(5);
const METRIC_INTERVAL: Duration = Duration::from_secs(60);

/// The variables of traces or of metrics, and the path below an endpoint of both.
struct Signal {
    exporter: &'static str,
    endpoint: &'static str,
    protocol: &'static str,
    headers: &'static str,
    time_out: &'static str,
    compression: &'static str,
    certificate: &'static str,
    path: &'static str,
}

const TRACES: Signal = Signal {
    exporter: "OTEL_TRACES_EXPORTER",
    endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    protocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    headers: "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    time_out: "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    compression: "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
    certificate: "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    path: "/v1/traces",
};
const METRICS: Signal = Signal {
    exporter: "OTEL_METRICS_EXPORTER",
    endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    protocol: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
    headers: "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    time_out: "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
    compression: "OTEL_EXPORTER_OTLP_METRICS_COMPRESSION",
    certificate: "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE",
    path: "/v1/metrics",
};

/// The options of telemetry, and what is wrong with the variables.
#[derive(Debug, Default)]
pub struct Telemetry {
    pub options: TelemetryOptions,
    pub warnings: Vec<String>,
}

impl Telemetry {
    /// Puts the options together. `variable` reads the environment.
    pub fn resolve(
        config: &TelemetryConfig,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, config::Error> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_disabled =
            variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if is_disabled {
            return Ok(Self::default());
        }
        let endpoint = variable(ENDPOINT).or_else(|| config.endpoint.clone());
        let mut warnings = Vec::new();
        let mut collector =
            |signal: &Signal, is_on| signal.collector(is_on, &endpoint, &variable, &mut warnings);
        let traces = collector(&TRACES, config.traces)?;
        let metrics = collector(&METRICS, config.metrics)?;
        if traces.is_none() && metrics.is_none() {
            let options = TelemetryOptions::default();
            return Ok(Self { options, warnings });
        }
        for name in CLIENT_CERTIFICATES {
            if variable(name).is_some() {
                let text = format!("{name} is ignored: the broker shows collectors no certificate");
                warnings.push(text);
            }
        }
        let sampler = sampler::resolve(&variable, &mut warnings);
        let traces = traces.filter(|_| sampler.is_some());
        let service = variable("OTEL_SERVICE_NAME").or_else(|| config.service_name.clone());
        let mut resource = pairs("OTEL_RESOURCE_ATTRIBUTES", &variable)?;
        for (key, value) in [
            ("service.name", service.as_deref()),
            ("service.version", Some(env!("CARGO_PKG_VERSION"))),
        ] {
            if let Some(value) = value {
                resource.retain(|(known, _)| known != key);
                resource.push((key.to_owned(), value.to_owned()));
            }
        }
        if !resource.iter().any(|(key, _)| key == "service.name") {
            resource.push(("service.name".to_owned(), "railbus".to_owned()));
        }
        let options = TelemetryOptions {
            traces,
            metrics,
            sampler: sampler.unwrap_or_default(),
            resource,
            schedule_delay: millis("OTEL_BSP_SCHEDULE_DELAY", &variable, SCHEDULE_DELAY)?,
            metric_interval: millis("OTEL_METRIC_EXPORT_INTERVAL", &variable, METRIC_INTERVAL)?,
        };
        Ok(Self { options, warnings })
    }
}

impl Signal {
    /// Where it goes: nowhere if it is off or its protocol is not spoken, which a warning tells.
    fn collector(
        &self,
        is_on: bool,
        endpoint: &Option<String>,
        variable: &impl Fn(&str) -> Option<String>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Collector>, config::Error> {
        let is_on = variable(self.exporter).map_or(is_on, |exporter| exporter == "otlp");
        let below = |base: &String| format!("{}{}", base.trim_end_matches('/'), self.path);
        let own = variable(self.endpoint).map(|url| (self.endpoint, url));
        let shared = || Some((ENDPOINT, endpoint.as_ref().map(below)?));
        let Some((name, url)) = own.or_else(shared).filter(|_| is_on) else {
            return Ok(None);
        };
        if !is_postable(&url) {
            return Err(config::Error::Argument {
                name,
                value: url,
                expected: "a URL of http or https",
            });
        }
        let name_of = |own, shared| if variable(own).is_some() { own } else { shared };
        let name = name_of(self.protocol, PROTOCOL);
        let protocol = match variable(name).as_deref() {
            None | Some("http/protobuf") => OtlpProtocol::Protobuf,
            Some("http/json") => OtlpProtocol::Json,
            Some(other) => {
                warn(
                    warnings,
                    format!(
                        "telemetry is off: {name} is '{}', and only http/protobuf and http/json are \
                     supported",
                        other.escape_debug()
                    ),
                );
                return Ok(None);
            }
        };
        let name = name_of(self.compression, COMPRESSION);
        let is_compressed = match variable(name).as_deref() {
            None | Some("none") => false,
            Some("gzip") => true,
            Some(other) => {
                let text = format!(
                    "{name} is '{}', which is not supported: nothing is compressed. Supported are \
                     gzip and none",
                    other.escape_debug()
                );
                warn(warnings, text);
                false
            }
        };
        let headers = pairs(name_of(self.headers, HEADERS), variable)?;
        let time_out = name_of(self.time_out, TIME_OUT);
        let name = name_of(self.certificate, CERTIFICATE);
        // Many environments name a file for all programs, also where nothing is encrypted.
        let file = variable(name).filter(|_| url.starts_with("https:"));
        let authorities = file.map(|file| authorities(name, file)).transpose()?;
        Ok(Some(Collector {
            url,
            protocol,
            is_compressed,
            headers,
            time_out: millis(time_out, variable, REQUEST_TIME_OUT)?,
            authorities,
        }))
    }
}

/// The certificates in a file, at least one.
fn authorities(
    name: &'static str,
    file: String,
) -> Result<Arc<[CertificateDer<'static>]>, config::Error> {
    let found = tls::read_chain(Path::new(&file));
    found.map(Arc::from).map_err(|_| config::Error::Argument {
        name,
        value: file,
        expected: "a file with certificates in PEM",
    })
}

/// Adds a warning, which may be about both signals.
fn warn(warnings: &mut Vec<String>, text: String) {
    if !warnings.contains(&text) {
        warnings.push(text);
    }
}

/// `key=value` with commas between, percent-encoded.
fn pairs(
    name: &'static str,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, config::Error> {
    let value = variable(name).unwrap_or_default();
    let decode = |text: &str| {
        let decoded = percent_decode_str(text.trim()).decode_utf8();
        decoded.ok().map(std::borrow::Cow::into_owned)
    };
    let parts = value.split(',').filter(|part| !part.trim().is_empty());
    let pairs = parts.map(|part| {
        let (key, value) = part.split_once('=')?;
        Some((decode(key)?, decode(value)?))
    });
    let pairs: Option<Vec<_>> = pairs.collect();
    // The value may hold a secret.
    pairs.ok_or(config::Error::Argument {
        name,
        value: "(not shown)".to_owned(),
        expected: "key=value pairs with commas between",
    })
}

fn millis(
    name: &'static str,
    variable: &impl Fn(&str) -> Option<String>,
    default: Duration,
) -> Result<Duration, config::Error> {
    let Some(value) = variable(name) else {
        return Ok(default);
    };
    match value.parse() {
        Ok(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err(config::Error::Argument {
            name,
            value,
            expected: "a number of milliseconds",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(
        config: &TelemetryConfig,
        variables: &[(&str, &str)],
    ) -> Result<Telemetry, config::Error> {
        Telemetry::resolve(config, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn to(endpoint: &str) -> TelemetryConfig {
        TelemetryConfig {
            endpoint: Some(endpoint.to_owned()),
            ..TelemetryConfig::default()
        }
    }

    #[test]
    fn it_is_off_without_an_endpoint_or_when_disabled() {
        let off = TelemetryOptions::default();
        let found = resolve(&TelemetryConfig::default(), &[]).unwrap();
        assert_eq!(found.options, off);
        let found = resolve(&to("http://a:4318"), &[("OTEL_SDK_DISABLED", "true")]);
        assert_eq!(found.unwrap().options, off);
        let found = resolve(
            &to("http://a:4318"),
            &[("OTEL_TRACES_SAMPLER", "always_off")],
        );
        assert_eq!(found.unwrap().options.traces, None);
        let variables = [
            (ENDPOINT, "http://a:4318"),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_METRICS_EXPORTER", "none"),
        ];
        let found = resolve(&TelemetryConfig::default(), &variables).unwrap();
        assert_eq!(found.options, off);
    }

    #[test]
    fn the_endpoint_is_a_base_and_those_of_one_signal_are_whole() {
        let variables = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://b/spans")];
        let found = resolve(&to("http://a:4318/"), &variables).unwrap().options;
        assert_eq!(found.traces.unwrap().url, "https://b/spans");
        assert_eq!(found.metrics.unwrap().url, "http://a:4318/v1/metrics");
        assert_eq!(found.metric_interval, METRIC_INTERVAL);
    }

    #[test]
    fn variables_win_over_the_file() {
        let variables = [
            (ENDPOINT, "http://b:4318"),
            (HEADERS, "authorization=Basic%20abc, x=y"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=c,zone=d"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "250"),
        ];
        let found = resolve(&to("http://a:4318"), &variables).unwrap().options;
        let traces = found.traces.as_ref().unwrap();
        assert_eq!(traces.url, "http://b:4318/v1/traces");
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = pairs.iter();
            pairs
                .map(|&(key, value)| (key.to_owned(), value.to_owned()))
                .collect()
        };
        let headers = owned(&[("authorization", "Basic abc"), ("x", "y")]);
        assert_eq!(traces.headers, headers);
        let version = env!("CARGO_PKG_VERSION");
        let resource = owned(&[
            ("service.name", "c"),
            ("zone", "d"),
            ("service.version", version),
        ]);
        assert_eq!(found.resource, resource);
        assert_eq!(found.metric_interval, Duration::from_millis(250));
        assert!(!format!("{found:?}").contains("abc"));
    }

    #[test]
    fn http_has_two_encodings() {
        let of = |protocol: &str| resolve(&to("http://a:4318"), &[(PROTOCOL, protocol)]);
        let protocol = |name: &str| of(name).unwrap().options.traces.unwrap().protocol;
        assert_eq!(protocol(""), OtlpProtocol::Protobuf);
        assert_eq!(protocol("http/protobuf"), OtlpProtocol::Protobuf);
        assert_eq!(protocol("http/json"), OtlpProtocol::Json);
    }

    #[test]
    fn a_variable_of_one_signal_replaces_that_of_both() {
        let variables = [
            (HEADERS, "a=1,b=2"),
            (METRICS.headers, "c=3"),
            (PROTOCOL, "grpc"),
            (METRICS.protocol, "http/json"),
        ];
        let found = resolve(&to("http://a:4318"), &variables).unwrap();
        assert!(found.warnings[0].contains(PROTOCOL));
        assert_eq!(found.options.traces, None);
        let metrics = found.options.metrics.unwrap();
        assert_eq!(metrics.protocol, OtlpProtocol::Json);
        assert_eq!(metrics.headers, [("c".to_owned(), "3".to_owned())]);
    }

    #[test]
    fn another_protocol_turns_it_off_and_is_told() {
        let variables = [(PROTOCOL, "grpc")];
        let found = resolve(&to("http://a:4317"), &variables).unwrap();
        assert_eq!(found.options, TelemetryOptions::default());
        assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
        assert!(found.warnings[0].contains("grpc"));
    }

    #[test]
    fn a_compression_is_taken_and_another_is_told_once() {
        let variables = [(COMPRESSION, "gzip"), (METRICS.compression, "none")];
        let found = resolve(&to("http://a:4318"), &variables).unwrap();
        assert!(found.options.traces.unwrap().is_compressed);
        assert!(!found.options.metrics.unwrap().is_compressed);
        assert!(found.warnings.is_empty());
        let found = resolve(&to("http://a:4318"), &[(COMPRESSION, "zstd")]).unwrap();
        assert!(!found.options.traces.unwrap().is_compressed);
        assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
        assert!(found.warnings[0].contains("Supported are gzip and none"));
    }

    #[test]
    fn a_time_out_is_taken() {
        let variables = [(TIME_OUT, "2500")];
        let found = resolve(&to("http://a:4318"), &variables).unwrap();
        let traces = found.options.traces.unwrap();
        assert_eq!(traces.time_out, Duration::from_millis(2_500));
        let variables = [(COMPRESSION, "none"), (METRICS.time_out, "1")];
        let found = resolve(&to("http://a:4318"), &variables).unwrap();
        assert_eq!(found.options.traces.unwrap().time_out, REQUEST_TIME_OUT);
        let metrics = found.options.metrics.unwrap();
        assert_eq!(metrics.time_out, Duration::from_millis(1));
        assert!(found.warnings.is_empty());
        let variables = [(CLIENT_CERTIFICATES[0], "/a.pem")];
        let found = resolve(&to("http://a:4318"), &variables).unwrap();
        assert!(found.warnings[0].contains("shows collectors no certificate"));
    }

    #[test]
    fn a_file_of_authorities_is_read_where_tls_is_spoken() {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, pem).unwrap();
        let file = file.to_str().unwrap();
        let variables = [(CERTIFICATE, "/none.pem"), (TRACES.certificate, file)];
        let plain = resolve(&to("http://a:4318"), &variables).unwrap().options;
        assert_eq!(plain.traces.unwrap().authorities, None);
        let traces = ("OTEL_METRICS_EXPORTER", "none");
        let found = resolve(&to("https://a:4318"), &[variables[1], traces]).unwrap();
        let traces = found.options.traces.unwrap();
        assert_eq!(traces.authorities.map(|found| found.len()), Some(1));
        let refused = resolve(&to("https://a:4318"), &variables).unwrap_err();
        assert!(refused.to_string().contains("/none.pem"), "{refused}");
    }

    #[test]
    fn a_bad_value_is_an_error_that_shows_no_header() {
        let message = |variables: &[(&str, &str)]| {
            let error = resolve(&to("http://a:4318"), variables).unwrap_err();
            error.to_string()
        };
        assert!(message(&[(ENDPOINT, "a:4318")]).contains(ENDPOINT));
        let headers = message(&[(HEADERS, "hush")]);
        assert!(!headers.contains("hush"), "{headers}");
        assert!(message(&[("OTEL_BSP_SCHEDULE_DELAY", "0")]).contains("milliseconds"));
    }
}
