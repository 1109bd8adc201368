//! Sandtray on the desktop. The product itself is `sandtray-core`; this crate shows it and passes the owner's wishes on.

pub mod dto;
