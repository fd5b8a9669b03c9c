//! stub
use super::args::*; use crate::error::Result;
pub async fn run(_g:&Global,_a:&BenchArgs)->Result<()>{Ok(())}
