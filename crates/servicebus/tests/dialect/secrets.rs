//! Secrets: neither keys nor tokens nor signatures show anywhere.

use crate::world::{KEY, Login, Request, SEND_KEY, World, rules, sender, token};

#[test]
fn no_debug_output_shows_a_key_or_a_token() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let pair = world.pair("$cbs");
    let good = token("sb://host/orders", "root", KEY, 60);
    let bad = token("sb://host/orders", "root", "not-the-key", 60);
    let mut texts = vec![
        format!("{:?}", rules()),
        format!("{:?}", rules().rules[0].primary),
    ];
    for token in [&good, &bad] {
        let response = world
            .call(&pair, &Request::put_token("sb://host/orders", token))
            .expect("an answer");
        texts.push(format!("{:?}", response.0));
    }
    world.sender("orders");
    texts.push(format!("{:?}", world.server));
    texts.push(format!("{:?}", world.commands));
    texts.push(format!("{:?}", world.refusal(sender("orders2"))));
    let signature = |token: &str| token.split("sig=").nth(1).expect("signed")[..20].to_owned();
    let mut secrets = vec![
        KEY.to_owned(),
        SEND_KEY.to_owned(),
        signature(&good),
        signature(&bad),
    ];
    // A byte string shows as text in `Debug`, so its beginning is looked for too.
    secrets.push(KEY[..8].to_owned());
    for text in &texts {
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{secret} in {text}");
        }
    }
}

#[test]
fn refusals_do_not_repeat_what_they_refuse() {
    let mut world = World::with(Login::Mechanism("ANONYMOUS"), |_| {});
    let pair = world.pair("$cbs");
    for token in [
        "SharedAccessSignature sr=x&sig=topsecret&se=1&skn=topsecret",
        "topsecret",
    ] {
        let response = world
            .call(&pair, &Request::put_token("sb://host/orders", token))
            .expect("an answer");
        assert!(!format!("{:?}", response.0.payload).contains("topsecret"));
    }
}

#[test]
fn a_password_does_not_stay_in_the_connection() {
    let world = World::with(Login::Plain("root", KEY), |_| {});
    assert!(!format!("{:?}", world.server).contains(&KEY[..8]));
    assert!(!format!("{:?}", world.commands).contains(&KEY[..8]));
}
