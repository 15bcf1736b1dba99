//! Messages: the sections that are found cover the message, and reading each never goes wrong.

#![no_main]

use amqp::message::{self, Header, Properties, Sections};
use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let input = Bytes::copy_from_slice(input);
    if let Ok(arranged) = message::arrange(&input) {
        assert_eq!(arranged.len(), input.len());
        assert!(Sections::scan(&arranged).is_ok());
    } else {
        assert!(Sections::scan(&input).is_err());
    }
    read(&input);
});

fn read(input: &Bytes) {
    let Ok(sections) = Sections::scan(input) else {
        return;
    };
    assert_eq!(sections.footer.end, input.len());
    assert_eq!(sections.bare().end, input.len());
    if let Ok(header) = Header::decode(&input[sections.header.clone()]) {
        let mut out = BytesMut::new();
        header.encode(&mut out);
        assert_eq!(Header::decode(&out), Ok(header));
    }
    if let Ok(properties) = Properties::decode(&input.slice(sections.properties.clone())) {
        let mut out = BytesMut::new();
        properties.encode(&mut out);
        assert!(Properties::decode(&out.freeze()).is_ok());
    }
    for range in [
        &sections.delivery_annotations,
        &sections.message_annotations,
        &sections.application_properties,
        &sections.footer,
    ] {
        let _ = message::decode_map_section(&input.slice(range.clone()));
    }
    if let Ok(parts) = message::batch_parts(input, &sections, 1_000) {
        assert_eq!(parts.len(), sections.body_sections);
        parts.iter().for_each(read);
    }
}
