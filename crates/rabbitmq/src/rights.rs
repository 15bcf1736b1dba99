//! Rights: RabbitMQ's permissions as rights of access rules. (docs/spec/rabbitmq.md#1, #14)

use access::RequiredRight;
use amqp::Error;
use broker::Resource;
use dialect::LinkContext;

use crate::attach::AttachRefusal;
use crate::errors;
use crate::links::Links;

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

impl Links {
    /// The error for a client without the right to what is at `path`, which texts name as that
    /// resource.
    pub(crate) fn deny(
        &self,
        cx: &LinkContext<'_>,
        permission: Permission,
        path: &str,
        resource: Resource<'_>,
    ) -> Option<Error> {
        let is_given = permission.is_given(cx, path);
        (!is_given).then(|| errors::no_access(permission.name(), resource, &self.user))
    }

    /// The same for a link that is not attached, whose session ends.
    pub(crate) fn check(
        &self,
        cx: &LinkContext<'_>,
        permission: Permission,
        path: &str,
        resource: Resource<'_>,
    ) -> Result<(), AttachRefusal> {
        match self.deny(cx, permission, path, resource) {
            None => Ok(()),
            Some(error) => Err(AttachRefusal::End(error)),
        }
    }
}
