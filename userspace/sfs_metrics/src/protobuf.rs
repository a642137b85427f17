//! Prometheus's protobuf format: messages `MetricFamily` of `io.prometheus.client`, each after its
//! length. The numbers of fields are those of Prometheus's `metrics.proto`.

use std::fmt::Error;

use quick_protobuf::Writer;

use crate::catalogue::{Family, Kind, Native, Sample, Shape, Value, SCHEMA, ZERO_THRESHOLD};

/// Returns the metrics, one message after the other.
///
/// # Errors
///
/// None: memory does not refuse to be written.
pub fn encode(families: &[Family]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    for one in families {
        let message = family(one).map_err(|_| Error)?;
        Writer::new(&mut out)
            .write_bytes(&message)
            .map_err(|_| Error)?;
    }
    Ok(out)
}

type Bytes = quick_protobuf::Result<Vec<u8>>;

/// A message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Adds a field: its number, the number of its wire type, and what writes it.
    fn field(
        &mut self,
        number: u32,
        wire: u32,
        write: impl FnOnce(&mut Writer<&mut Vec<u8>>) -> quick_protobuf::Result<()>,
    ) -> quick_protobuf::Result<()> {
        let mut writer = Writer::new(&mut self.0);
        writer.write_tag(number << 3 | wire)?;
        write(&mut writer)
    }

    fn text(&mut self, number: u32, text: &str) -> quick_protobuf::Result<()> {
        self.field(number, 2, |out| out.write_string(text))
    }

    fn message(&mut self, number: u32, message: &[u8]) -> quick_protobuf::Result<()> {
        self.field(number, 2, |out| out.write_bytes(message))
    }

    fn double(&mut self, number: u32, value: f64) -> quick_protobuf::Result<()> {
        self.field(number, 1, |out| out.write_double(value))
    }

    fn unsigned(&mut self, number: u32, value: u64) -> quick_protobuf::Result<()> {
        self.field(number, 0, |out| out.write_uint64(value))
    }

    fn signed(&mut self, number: u32, value: i64) -> quick_protobuf::Result<()> {
        self.field(number, 0, |out| out.write_sint64(value))
    }
}

/// `MetricFamily`.
fn family(family: &Family) -> Bytes {
    const COUNTER: u64 = 0;
    const GAUGE: u64 = 1;
    const HISTOGRAM: u64 = 4;
    let mut out = Message::default();
    out.text(1, &family.exposed_name())?;
    out.text(2, &family.help)?;
    let kind = match family.kind {
        Kind::Counter => COUNTER,
        Kind::Gauge | Kind::Info => GAUGE,
        Kind::Histogram => HISTOGRAM,
    };
    out.unsigned(3, kind)?;
    for sample in &family.samples {
        out.message(4, &metric(family.kind, sample)?)?;
    }
    if let Some(unit) = family.unit {
        out.text(5, unit)?;
    }
    Ok(out.0)
}

/// `Metric`.
fn metric(kind: Kind, sample: &Sample) -> Bytes {
    let mut out = Message::default();
    for (name, value) in &sample.labels {
        let mut pair = Message::default();
        pair.text(1, name)?;
        pair.text(2, value)?;
        out.message(1, &pair.0)?;
    }
    let number = match &sample.value {
        Value::Histogram(shape) => {
            out.message(7, &histogram(shape)?)?;
            return Ok(out.0);
        }
        Value::Count(count) => *count as f64,
        Value::Number(number) => *number,
    };
    let mut value = Message::default();
    value.double(1, number)?;
    out.message(if kind == Kind::Counter { 3 } else { 2 }, &value.0)?;
    Ok(out.0)
}

/// `Histogram`, with its classic buckets and the native ones. Prometheus takes the native ones if
/// there are some.
fn histogram(shape: &Shape) -> Bytes {
    let mut out = Message::default();
    out.unsigned(1, shape.count)?;
    out.double(2, shape.sum)?;
    let mut up_to = 0;
    for (end, count) in &shape.classic {
        up_to += count;
        let mut bucket = Message::default();
        bucket.unsigned(1, up_to)?;
        bucket.double(2, *end)?;
        out.message(3, &bucket.0)?;
    }
    if let Some(native) = &shape.native {
        write_native(&mut out, native)?;
    }
    Ok(out.0)
}

fn write_native(out: &mut Message, native: &Native) -> quick_protobuf::Result<()> {
    out.signed(5, SCHEMA.into())?;
    out.double(6, ZERO_THRESHOLD)?;
    out.unsigned(7, native.zero)?;
    for (offset, length) in spans(&native.buckets) {
        let mut span = Message::default();
        span.signed(1, offset.into())?;
        span.unsigned(2, length)?;
        out.message(12, &span.0)?;
    }
    let mut before = 0;
    for (_, count) in &native.buckets {
        let count = *count as i64;
        out.signed(13, count - before)?;
        before = count;
    }
    Ok(())
}

/// Returns the runs of consecutive buckets: the distance from the end of the one before, and the
/// length.
fn spans(buckets: &[(i32, u64)]) -> Vec<(i32, u64)> {
    let mut spans: Vec<(i32, u64)> = Vec::new();
    let mut end = 0;
    for (number, _) in buckets {
        match spans.last_mut() {
            Some((_, length)) if *number == end => *length += 1,
            _ => spans.push((number - end, 1)),
        }
        end = number + 1;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_grouped_into_spans() {
        assert_eq!(spans(&[]), []);
        let buckets = [(-3, 1), (-2, 5), (0, 2), (4, 9), (5, 9)];
        assert_eq!(spans(&buckets), [(-3, 2), (1, 1), (3, 2)]);
    }

    /// As `protoc --decode` reads it, written down by hand.
    #[test]
    fn a_counter_has_the_bytes_of_the_format() {
        let one = Family {
            name: "a".into(),
            help: "b".into(),
            unit: None,
            kind: Kind::Counter,
            samples: vec![Sample {
                labels: vec![("l", "v".into())],
                value: Value::Count(1),
            }],
        };
        let mut expected = b"\x23\x0a\x07a_total\x12\x01b\x18\x00\x22\x13".to_vec();
        expected.extend(b"\x0a\x06\x0a\x01l\x12\x01v\x1a\x09\x09");
        expected.extend(1f64.to_le_bytes());
        assert_eq!(encode(&[one]).unwrap(), expected);
    }
}
