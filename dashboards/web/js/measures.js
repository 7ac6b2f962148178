// What is shown of the server's metrics, reckoned once a second.

/** By name, what a step from one sample to the next gives. */
export const MEASURES = {
  writes: (step) => step.rate('seqtide_rows_written_total'),
  commits: (step) => step.rate('seqtide_commits_total'),
  deliveries: (step) => step.rate('seqtide_rows_sent_total'),
  delivered: (step) => step.rate('seqtide_bytes_sent_total'),
  commitHalf: (step) => step.quantile('seqtide_commit_seconds', 0.5),
  commitMost: (step) => step.quantile('seqtide_commit_seconds', 0.99),
  lagHalf: (step) => step.spread('seqtide_feeds_lag_seconds', 0.5),
  lagMost: (step) => step.spread('seqtide_feeds_lag_seconds', 0.99),
  feeds: (step) => step.value('seqtide_feeds_open'),
  memory: (step) => step.value('process_resident_memory_bytes'),
  processor: (step) => step.rate('process_cpu_seconds_total'),
};
