//! Messages with one data section, as small as messages get. [AMQP 3.2.6]

use amqp::message::Sections;

/// The encoded message with `body` in it.
#[must_use]
pub fn encode(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("tests send less than 4 GiB");
    let mut message = vec![0x00, 0x53, 0x75, 0xb0];
    message.extend_from_slice(&length.to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// The body of a message made by [`encode`], wherever it has been meanwhile.
#[must_use]
pub fn body(message: &[u8]) -> Vec<u8> {
    let sections = Sections::scan(message).expect("the broker sends well-formed messages");
    let data = &message[sections.body];
    assert_eq!(data[..3], [0x00, 0x53, 0x75], "a data section");
    match data[3] {
        0xa0 => data[5..].to_vec(),
        0xb0 => data[8..].to_vec(),
        other => panic!("{other:#x} is no binary"),
    }
}
