//! Telemetry: the collector, from `[telemetry]` and the standard variables of OpenTelemetry.
//!
//! A variable wins over the file. Telemetry is off without an endpoint, and with
//! `OTEL_SDK_DISABLED`. Only OTLP over HTTP is spoken: a variable that asks for gRPC turns
//! telemetry off, with a warning. (docs/telemetry.md)

use std::time::Duration;

use percent_encoding::percent_decode_str;
use server::{OtlpProtocol, TelemetryOptions, is_postable};

use crate::config::{self, TelemetryConfig};

const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const SCHEDULE_DELAY: Duration = Duration::from_secs(5);
const METRIC_INTERVAL: Duration = Duration::from_secs(60);

/// The options of telemetry, and what is wrong with the variables.
#[derive(Debug, Default)]
pub struct Telemetry {
    pub options: TelemetryOptions,
    pub warning: Option<String>,
}

impl Telemetry {
    /// Puts the options together. `variable` reads the environment.
    pub fn resolve(
        config: &TelemetryConfig,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, config::Error> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let endpoint = variable(ENDPOINT).or_else(|| config.endpoint.clone());
        let url = |is_on: bool, exporter: &str, own: &'static str, path: &str| {
            let is_on = variable(exporter).map_or(is_on, |exporter| exporter == "otlp");
            let below = |base: &String| format!("{}{path}", base.trim_end_matches('/'));
            let (name, url) = match variable(own) {
                Some(url) => (own, Some(url)),
                None => (ENDPOINT, endpoint.as_ref().map(below)),
            };
            let url = url.filter(|_| is_on);
            check_url(name, url)
        };
        let traces_url = url(
            config.traces,
            "OTEL_TRACES_EXPORTER",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "/v1/traces",
        )?;
        let metrics_url = url(
            config.metrics,
            "OTEL_METRICS_EXPORTER",
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            "/v1/metrics",
        )?;
        let is_disabled =
            variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if is_disabled || (traces_url.is_none() && metrics_url.is_none()) {
            return Ok(Self::default());
        }
        let protocol = match variable(PROTOCOL).as_deref() {
            None | Some("http/protobuf") => OtlpProtocol::Protobuf,
            Some("http/json") => OtlpProtocol::Json,
            Some(other) => {
                let warning = format!(
                    "telemetry is off: {PROTOCOL} is '{}', and only http/protobuf and http/json are \
                     supported",
                    other.escape_debug()
                );
                return Ok(Self {
                    warning: Some(warning),
                    ..Self::default()
                });
            }
        };
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
            traces_url,
            metrics_url,
            protocol,
            headers: pairs("OTEL_EXPORTER_OTLP_HEADERS", &variable)?,
            resource,
            schedule_delay: millis("OTEL_BSP_SCHEDULE_DELAY", &variable, SCHEDULE_DELAY)?,
            metric_interval: millis("OTEL_METRIC_EXPORT_INTERVAL", &variable, METRIC_INTERVAL)?,
        };
        Ok(Self {
            options,
            warning: None,
        })
    }
}

fn check_url(name: &'static str, url: Option<String>) -> Result<Option<String>, config::Error> {
    match url {
        Some(value) if !is_postable(&value) => Err(config::Error::Argument {
            name,
            value,
            expected: "a URL of http or https",
        }),
        url => Ok(url),
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
        assert_eq!(found.traces_url.as_deref(), Some("https://b/spans"));
        assert_eq!(
            found.metrics_url.as_deref(),
            Some("http://a:4318/v1/metrics")
        );
        assert_eq!(found.metric_interval, METRIC_INTERVAL);
    }

    #[test]
    fn variables_win_over_the_file() {
        let variables = [
            (ENDPOINT, "http://b:4318"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Basic%20abc, x=y",
            ),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=c,zone=d"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "250"),
        ];
        let found = resolve(&to("http://a:4318"), &variables).unwrap().options;
        assert_eq!(found.traces_url.as_deref(), Some("http://b:4318/v1/traces"));
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = pairs.iter();
            pairs
                .map(|&(key, value)| (key.to_owned(), value.to_owned()))
                .collect()
        };
        let headers = owned(&[("authorization", "Basic abc"), ("x", "y")]);
        assert_eq!(found.headers, headers);
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
        let protocol = |name: &str| of(name).unwrap().options.protocol;
        assert_eq!(protocol(""), OtlpProtocol::Protobuf);
        assert_eq!(protocol("http/protobuf"), OtlpProtocol::Protobuf);
        assert_eq!(protocol("http/json"), OtlpProtocol::Json);
    }

    #[test]
    fn another_protocol_turns_it_off_and_is_told() {
        let variables = [(PROTOCOL, "grpc")];
        let found = resolve(&to("http://a:4317"), &variables).unwrap();
        assert_eq!(found.options, TelemetryOptions::default());
        assert!(found.warning.unwrap().contains("grpc"));
    }

    #[test]
    fn a_bad_value_is_an_error_that_shows_no_header() {
        let message = |variables: &[(&str, &str)]| {
            let error = resolve(&to("http://a:4318"), variables).unwrap_err();
            error.to_string()
        };
        assert!(message(&[(ENDPOINT, "a:4318")]).contains(ENDPOINT));
        let headers = message(&[("OTEL_EXPORTER_OTLP_HEADERS", "hush")]);
        assert!(!headers.contains("hush"), "{headers}");
        assert!(message(&[("OTEL_BSP_SCHEDULE_DELAY", "0")]).contains("milliseconds"));
    }
}
