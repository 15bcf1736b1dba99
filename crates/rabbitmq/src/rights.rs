//! Rights: RabbitMQ's permissions as rights of access rules. (docs/spec/rabbitmq.md#1, #14)

use access::RequiredRight;
use dialect::LinkContext;

/// A permission of RabbitMQ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Permission {
    Configure,
    Write,
    Read,
}

impl Permission {
    /// As error texts name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Write => "write",
            Self::Read => "read",
        }
    }

    const fn required_right(self) -> RequiredRight {
        match self {
            Self::Configure => RequiredRight::Manage,
            Self::Write => RequiredRight::Send,
            Self::Read => RequiredRight::Listen,
        }
    }

    /// Whether the client has it at `path`, for something new.
    pub(crate) fn is_given(self, cx: &LinkContext<'_>, path: &str) -> bool {
        let access = cx.directory.access();
        let rights = cx.claims.rights(access, &path.to_lowercase(), cx.now.wall);
        rights.allow(self.required_right())
    }

    /// Whether a link that is attached may keep it.
    pub(crate) fn is_kept(self, cx: &LinkContext<'_>, path: &str) -> bool {
        let access = cx.directory.access();
        let rights = cx.claims.rights_within_grace(access, &path.to_lowercase());
        rights.allow(self.required_right())
    }
}
