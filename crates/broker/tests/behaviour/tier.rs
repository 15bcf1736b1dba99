//! Tier: what a namespace of Basic refuses besides properties of entities.
//! (docs/spec/entities.md#4)

use broker::{BrokerSettings, Tier};
use expect_test::expect;

use crate::script::check_with;

#[test]
fn basic_has_no_dynamic_topics_and_nothing_that_distributes_messages() {
    check_with(
        BrokerSettings {
            tier: Tier::Basic,
            ..BrokerSettings::default()
        },
        "
        0s queue
        0s make replies r1/1
        0s make news r1/2 topic
        0s router one fanout
        0s router amq.direct direct
        0s bind queue k router=amq.direct
        ",
        expect![[r#"
            0s r1/1 has the Queue replies
            0s r1/2 has no news: a namespace of the Basic tier does not have topics
            0s router one fanout: a namespace of the Basic tier does not have exchanges
            0s router amq.direct direct: done
            0s bind queue k router=amq.direct: a namespace of the Basic tier does not have bindings
        "#]],
    );
}
