//! Policies of files: each can be applied, and none is there twice.

use broker::Policy;

use super::error::Error;

/// Checks the policies of a file. `refuse` makes an error of a path in the file.
pub fn check(policies: &[Policy], refuse: impl Fn(String, String) -> Error) -> Result<(), Error> {
    for (index, policy) in policies.iter().enumerate() {
        let at = format!("policies[{index}]");
        if let Err(error) = policy.check() {
            return Err(refuse(at, error.to_string()));
        }
        if policies[..index].iter().any(|other| is_same(other, policy)) {
            let text = format!("the {} `{}` is there already", policy.layer, policy.name);
            return Err(refuse(format!("{at}.name"), text));
        }
    }
    Ok(())
}

/// Adds the policies of `railbus.toml` to those of the entities file. If both name one, the
/// entities file wins, with a warning.
pub fn add(known: &mut Vec<Policy>, of_settings: Vec<Policy>, warnings: &mut Vec<String>) {
    for policy in of_settings {
        if known.iter().any(|other| is_same(other, &policy)) {
            let (layer, name) = (policy.layer, &policy.name);
            let text = format!("the {layer} {name} is in both files; the entities file holds");
            warnings.push(text);
        } else {
            known.push(policy);
        }
    }
}

fn is_same(one: &Policy, other: &Policy) -> bool {
    (one.layer, &one.name) == (other.layer, &other.name)
}
