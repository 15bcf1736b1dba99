//! Responses: status, headers and body of answers, and refusals from before a request is routed.

pub mod answer;
pub mod early_refusal;
pub mod response_body;
