//! Sampler: which messages have spans, by the standard variables.

use server::Sampler;

const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";

/// Which messages have spans; none if no trace is to be sent. What a parent decides is the same
/// for all samplers that ask it, since a message without one has no span.
pub fn resolve(
    variable: &impl Fn(&str) -> Option<String>,
    warnings: &mut Vec<String>,
) -> Option<Sampler> {
    let name = variable(SAMPLER).unwrap_or_default();
    match &*name {
        "always_on" => Some(Sampler::ALWAYS),
        "always_off" => None,
        "traceidratio" => Some(Sampler::of_ratio(ratio(variable, warnings))),
        "" | "parentbased_always_on" | "parentbased_always_off" | "parentbased_traceidratio" => {
            Some(Sampler::Parent)
        }
        other => {
            warnings.push(format!(
                "{SAMPLER} is '{}', which is not supported: the sender of a message decides. \
                 Supported are always_on, always_off, traceidratio, parentbased_always_on, \
                 parentbased_always_off and parentbased_traceidratio",
                other.escape_debug()
            ));
            Some(Sampler::Parent)
        }
    }
}

/// As the standard has it, a ratio that cannot be read counts as unset, which is all traces.
fn ratio(variable: &impl Fn(&str) -> Option<String>, warnings: &mut Vec<String>) -> f64 {
    let Some(text) = variable(SAMPLER_ARGUMENT) else {
        return 1.0;
    };
    match text.parse() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
        _ => {
            warnings.push(format!(
                "{SAMPLER_ARGUMENT} is '{}', which is no number from 0 to 1: all traces are sampled",
                text.escape_debug()
            ));
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_of_the_standard_is_taken_and_another_is_told() {
        let check = |name: &str, argument: &str, expected: Option<Sampler>, warns: bool| {
            let variable = |asked: &str| {
                let value = if asked == SAMPLER { name } else { argument };
                Some(value.to_owned()).filter(|value| !value.is_empty())
            };
            let mut warnings = Vec::new();
            let sampler = resolve(&variable, &mut warnings);
            assert_eq!(sampler, expected, "{name} {argument}");
            assert_eq!(warnings.len(), usize::from(warns), "{name} {argument}");
        };
        let half = Some(Sampler::of_ratio(0.5));
        check("", "", Some(Sampler::Parent), false);
        check("always_on", "", Some(Sampler::ALWAYS), false);
        check("always_off", "", None, false);
        check("traceidratio", "0.5", half, false);
        check("traceidratio", "", Some(Sampler::ALWAYS), false);
        check("traceidratio", "2", Some(Sampler::ALWAYS), true);
        check("traceidratio", "NaN", Some(Sampler::ALWAYS), true);
        for name in ["always_on", "always_off", "traceidratio"] {
            let name = format!("parentbased_{name}");
            check(&name, "0.5", Some(Sampler::Parent), false);
        }
        check(
            "jaeger_remote",
            "endpoint=http://a",
            Some(Sampler::Parent),
            true,
        );
    }
}
