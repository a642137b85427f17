//! The formats, and which one a client wants.
//!
//! Text is encoded by `prometheus-client`. It can also encode native histograms as protobuf, but
//! only with a library whose licence does not go with GPL-2.0-only; hence the module `protobuf`.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    prometheus_text, text, DescriptorEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::catalogue::{Family, Kind, Sample, Value};
use crate::protobuf;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Prometheus's text format, which everything reads, and node_exporter only.
    Text,
    /// OpenMetrics.
    OpenMetrics,
    /// Prometheus's protobuf format, the only one with native histograms.
    Protobuf,
}

impl Form {
    /// All formats, in the order in which they are preferred if a client has no preference.
    const ALL: [Self; 3] = [Self::Text, Self::OpenMetrics, Self::Protobuf];

    /// Returns the value of the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }

    /// Returns the format that a client prefers by its header `Accept`; an unknown one gets text.
    pub fn accepted(header: &str) -> Self {
        let weights = Self::ALL.map(|form| form.weight(header));
        let (mut best, mut most) = (Self::Text, 0.0);
        for (form, weight) in Self::ALL.into_iter().zip(weights) {
            if weight > most {
                (best, most) = (form, weight);
            }
        }
        best
    }

    /// Returns how much a client wants this format, from 0 to 1.
    fn weight(self, header: &str) -> f64 {
        let ranges = header.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let is_this = self.is_named(parts.next()?, &parts.clone().collect::<Vec<_>>());
            let given = parts.find_map(|part| part.strip_prefix("q="));
            let weight = given.map_or(Some(1.0), |text| text.parse().ok())?;
            is_this.then_some(weight)
        });
        ranges.fold(0.0, f64::max)
    }

    fn is_named(self, range: &str, parameters: &[&str]) -> bool {
        match self {
            Self::Text => ["text/plain", "text/*", "*/*"].contains(&range),
            Self::OpenMetrics => range == "application/openmetrics-text",
            Self::Protobuf => {
                range == "application/vnd.google.protobuf"
                    && parameters.contains(&"encoding=delimited")
                    && parameters.contains(&"proto=io.prometheus.client.MetricFamily")
            }
        }
    }

    /// Returns the metrics in this format.
    ///
    /// # Errors
    ///
    /// The library refuses a metric.
    pub fn encode(self, families: Vec<Family>) -> Result<Vec<u8>, Error> {
        if self == Self::Protobuf {
            return protobuf::encode(&families);
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Families(families)));
        let mut out = String::new();
        match self {
            Self::OpenMetrics => text::encode(&mut out, &registry)?,
            _ => prometheus_text::encode(&mut out, &registry)?,
        }
        Ok(out.into_bytes())
    }
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for family in &self.0 {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
                Kind::Info => MetricType::Info,
            };
            let unit = family.unit.map(|unit| Unit::Other(unit.to_owned()));
            // The library adds the unit to the name.
            let end = family.unit.map_or(String::new(), |unit| format!("_{unit}"));
            let name = family.name.strip_suffix(&end).unwrap_or(&family.name);
            let mut all = encoder.encode_descriptor(name, &family.help, unit.as_ref(), kind)?;
            for sample in &family.samples {
                encode_sample(&mut all, family.kind, sample)?;
            }
        }
        Ok(())
    }
}

fn encode_sample(all: &mut MetricEncoder<'_>, kind: Kind, sample: &Sample) -> Result<(), Error> {
    if kind == Kind::Info {
        return all.encode_info(&sample.labels);
    }
    if sample.labels.is_empty() {
        return encode_value(all, kind, &sample.value);
    }
    encode_value(&mut all.encode_family(&sample.labels)?, kind, &sample.value)
}

fn encode_value(one: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> Result<(), Error> {
    match (value, kind) {
        (Value::Count(count), Kind::Counter) => {
            one.encode_counter::<NoLabelSet, _, f64>(count, None)
        }
        (Value::Number(sum), Kind::Counter) => one.encode_counter::<NoLabelSet, _, f64>(sum, None),
        (Value::Count(count), _) => one.encode_gauge(count),
        (Value::Number(number), _) => one.encode_gauge(number),
        (Value::Histogram(shape), _) => {
            one.encode_histogram::<NoLabelSet>(shape.sum, shape.count, &shape.classic, None)
        }
    }
}
