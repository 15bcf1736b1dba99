//! `[[faults]]`: the fault rules that a namespace begins with. The members of a rule are those of
//! its JSON.

use broker::{FaultRule, check_faults};

use super::error::Error;

/// Checks the rules of one namespace. `refuse` makes an error of a path in the file.
pub fn check(rules: &[FaultRule], refuse: impl Fn(String, String) -> Error) -> Result<(), Error> {
    check_faults(rules)
        .map_err(|(index, error)| refuse(format!("faults[{index}]"), error.to_string()))
}

#[cfg(test)]
mod tests {
    use broker::{FaultEffect, FaultOperation, InjectedError};

    use crate::config::file_tests::check;

    #[test]
    fn rules_are_written_as_in_json() {
        let entities = check(
            "q.toml",
            "[[faults]]\nname = 'busy'\neffect = { refuse = 'server-busy' }\n\
             match = { entity = 'orders', operations = ['send'], times = 2, probability = 1 }\n\
             [[namespaces]]\nname = 'shop'\n\
             [[namespaces.faults]]\nname = 'lost'\neffect = 'lose-lock'\n",
        )
        .unwrap();
        let [busy] = &entities.faults[..] else {
            panic!("{:?}", entities.faults);
        };
        let effect = FaultEffect::Refuse(InjectedError::ServerBusy);
        assert_eq!((&*busy.name, busy.effect), ("busy", effect));
        assert_eq!(busy.matches.operations, [FaultOperation::Send]);
        assert_eq!(busy.matches.times, Some(2));
        let of_shop = &entities.namespaces[0].faults;
        assert_eq!(of_shop[0].effect, FaultEffect::LoseLock);
    }

    #[test]
    fn what_is_wrong_is_told_at_its_place_with_what_is_allowed() {
        let rule = "[[faults]]\nname = 'a'\n";
        for (text, expected) in [
            (
                "effect = 'explode'",
                "q.toml:3: faults[0].effect: unknown variant `explode`, expected one of `refuse`, `disconnect`, `detach`",
            ),
            (
                "effect = { refuse = 'boom' }",
                "q.toml:3: faults[0].effect.refuse: unknown variant `boom`, expected one of `server-busy`, `timeout`",
            ),
            (
                "effect = { throttle-per-second = -1 }",
                "q.toml:3: faults[0].effect.throttle-per-second: invalid value: integer `-1`, expected u32",
            ),
            (
                "effect = { throttle-per-second = 0 }",
                "q.toml:1: faults[0]: fault 'a': throttle-per-second: 0 is below the minimum of 1",
            ),
            (
                "effect = 'lose-lock'\nmatch = { operations = ['fly'] }",
                "q.toml:4: faults[0].match.operations[0]: unknown variant `fly`, expected one of `attach`",
            ),
            (
                "effect = 'lose-lock'\nwhen = 1",
                "q.toml:4: faults[0].when: unknown field `when`, expected one of `name`, `match`, `effect`",
            ),
            (
                "effect = 'lose-lock'\n[[faults]]\nname = 'a'\neffect = 'lose-lock'",
                "q.toml:4: faults[1]: fault 'a': it is listed twice",
            ),
        ] {
            let error = check("q.toml", &format!("{rule}{text}\n")).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let within =
            "[[namespaces]]\nname = 'n'\n[[namespaces.faults]]\nname = ''\neffect = 'lose-lock'\n";
        let error = check("q.toml", within).unwrap_err();
        assert!(
            error.contains("namespaces[0].faults[0]: fault: a name has 1 to 256"),
            "{error}"
        );
    }
}
