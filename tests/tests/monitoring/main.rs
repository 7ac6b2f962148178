//! What users of Prometheus and Grafana are given, against both the real server and a real Prometheus.

mod alerts;
mod boards;
