//! Processor: whether it can run the RocksDB in this program.
//!
//! RocksDB is compiled with the flags of `.cargo/config.toml`, which are in the environment of
//! this compilation too. A processor without the extensions of these flags would end the program
//! with an illegal instruction at any moment, so they are checked first.

/// What RocksDB was compiled with.
const FLAGS: &str = match option_env!("CXXFLAGS_x86_64_unknown_linux_gnu") {
    Some(flags) if IS_MEANT => flags,
    _ => "",
};
/// Whether we are compiled for the target that the variable names.
const IS_MEANT: bool = cfg!(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_env = "gnu"
));

/// What the processor does not have.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "this program was compiled for processors with {}, which this one does not have; \
     build one without these flags in .cargo/config.toml: {}",
    .features.join(" and "),
    .flags.join(" ")
)]
pub struct MissingFeature {
    features: Vec<&'static str>,
    flags: Vec<&'static str>,
}

/// An extension of the processor that a compiler's flag makes use of.
#[derive(Clone, Copy)]
struct Extension {
    flag: &'static str,
    name: &'static str,
    detected: bool,
}

/// Asks the processor.
///
/// # Errors
/// When it cannot run RocksDB as it was compiled.
pub fn check() -> Result<(), MissingFeature> {
    require(FLAGS, &detected())
}

#[cfg(target_arch = "x86_64")]
fn detected() -> [Extension; 2] {
    [
        Extension {
            flag: "-msse4.2",
            name: "SSE4.2",
            detected: std::arch::is_x86_feature_detected!("sse4.2"),
        },
        Extension {
            flag: "-mpclmul",
            name: "PCLMULQDQ",
            detected: std::arch::is_x86_feature_detected!("pclmulqdq"),
        },
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn detected() -> [Extension; 0] {
    []
}

/// Whether everything that `flags` make use of was detected.
fn require(flags: &str, extensions: &[Extension]) -> Result<(), MissingFeature> {
    let is_used = |flag| flags.split_whitespace().any(|word| word == flag);
    let lacking = extensions
        .iter()
        .filter(|extension| is_used(extension.flag) && !extension.detected);
    let (features, flags): (Vec<_>, Vec<_>) = lacking
        .map(|extension| (extension.name, extension.flag))
        .unzip();
    if features.is_empty() {
        Ok(())
    } else {
        Err(MissingFeature { features, flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(flags: &str, sse: bool, pclmul: bool) -> Option<String> {
        let extensions = [
            ("-msse4.2", "SSE4.2", sse),
            ("-mpclmul", "PCLMULQDQ", pclmul),
        ];
        let extensions = extensions.map(|(flag, name, detected)| Extension {
            flag,
            name,
            detected,
        });
        require(flags, &extensions)
            .err()
            .map(|lacking| lacking.to_string())
    }

    #[test]
    fn a_processor_with_everything_is_fine() {
        assert_eq!(check("-O2 -msse4.2 -mpclmul", true, true), None);
    }

    #[test]
    fn a_processor_without_something_is_refused_and_the_flag_named() {
        assert_eq!(
            check("-msse4.2 -mpclmul", true, false).as_deref(),
            Some(
                "this program was compiled for processors with PCLMULQDQ, which this one does not have; \
                 build one without these flags in .cargo/config.toml: -mpclmul"
            )
        );
        let both = check("-msse4.2 -mpclmul", false, false).expect("refused");
        assert!(both.contains("SSE4.2 and PCLMULQDQ"), "{both}");
    }

    #[test]
    fn what_rocksdb_was_not_compiled_with_is_not_needed() {
        assert_eq!(check("", false, false), None);
        assert_eq!(check("-mpclmul", false, true), None);
    }

    #[test]
    fn every_flag_of_the_configuration_is_checked() {
        let configuration = include_str!("../../../.cargo/config.toml");
        let is_configured = configuration.contains("\nCXXFLAGS_x86_64_unknown_linux_gnu");
        assert_eq!(!FLAGS.is_empty(), is_configured && IS_MEANT);
        let known = detected().map(|extension| extension.flag);
        for flag in FLAGS.split_whitespace() {
            assert!(!flag.starts_with("-m") || known.contains(&flag), "{flag}");
        }
    }

    #[test]
    fn the_processor_of_this_test_is_fine() {
        assert_eq!(super::check(), Ok(()));
    }
}
