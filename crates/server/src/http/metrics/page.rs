//! Page: the answer to one scrape, built metric by metric.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeGaugeValue, EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{Atomic, Gauge};
use prometheus_client::registry::{Metric, Registry, Unit};

/// Metrics with their values.
pub struct Page {
    registry: Registry,
}

impl Page {
    pub fn new() -> Self {
        Self {
            registry: Registry::with_prefix("railbus"),
        }
    }

    /// A metric of which there is one.
    pub fn gauge<N: Number>(&mut self, name: &str, help: &str, unit: Option<Unit>, value: N)
    where
        AtomicU64: Atomic<N>,
    {
        let gauge = Gauge::<N, AtomicU64>::default();
        gauge.set(value);
        self.metric(name, help, unit, gauge);
    }

    /// A counter of which there is one; its name ends with `_total` on the page.
    pub fn counter(&mut self, name: &str, help: &str, unit: Option<Unit>, value: u64) {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        self.metric(name, help, unit, counter);
    }

    /// A counter of seconds; its name ends with `_seconds_total` on the page.
    pub fn seconds(&mut self, name: &str, help: &str, value: Duration) {
        let counter = Counter::<f64, AtomicU64>::default();
        counter.inc_by(value.as_secs_f64());
        self.metric(name, help, Some(Unit::Seconds), counter);
    }

    /// A metric for each of several labels.
    pub fn gauges<L: Label, N: Number>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (L, N)>,
    ) where
        AtomicU64: Atomic<N>,
    {
        let family = Family::<L, Gauge<N, AtomicU64>>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).set(value);
        }
        self.metric(name, help, unit, family);
    }

    /// A counter for each of several labels.
    pub fn counters<L: Label>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) {
        let family = Family::<L, Counter>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.metric(name, help, None, family);
    }

    /// Any metric.
    pub fn metric(&mut self, name: &str, help: &str, unit: Option<Unit>, metric: impl Metric) {
        match unit {
            Some(unit) => self.registry.register_with_unit(name, help, unit, metric),
            None => self.registry.register(name, help, metric),
        }
    }

    pub fn into_text(self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// What tells the series of one metric apart.
pub trait Label:
    EncodeLabelSet + Clone + std::hash::Hash + Eq + Send + Sync + std::fmt::Debug + 'static
{
}

impl<T> Label for T where
    T: EncodeLabelSet + Clone + std::hash::Hash + Eq + Send + Sync + std::fmt::Debug + 'static
{
}

/// What a gauge shows: a count or a measure.
pub trait Number: EncodeGaugeValue + Send + Sync + std::fmt::Debug + 'static {}

impl Number for u64 {}
impl Number for f64 {}

/// A count as one that is measured.
pub fn measure(count: u64) -> f64 {
    #[allow(
        clippy::cast_precision_loss,
        reason = "Prometheus has no other numbers"
    )]
    let measure = count as f64;
    measure
}
