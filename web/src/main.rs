//! The binary `seqtide`: reads its configuration, starts the log and serves.

use std::error::Error;
use std::io::{Write, stdout};
use std::process::ExitCode;

use seqtide_server::config::{Config, cli};
use seqtide_server::logging;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seqtide: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn Error>> {
    let flags = cli::parse();
    let config = Config::load(&flags)?;
    if flags.print_config {
        stdout().write_all(config.to_commented_toml().as_bytes())?;
        return Ok(());
    }
    logging::start(&config)?;
    seqtide_server::run(config)?;
    Ok(())
}
