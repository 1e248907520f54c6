//! Far more sockets than the control plane has room for, from one client without
//! a key: probes, people and nodes go on.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slipway_testkit::ports::lasting_loopback_port;

use crate::control_plane::{ControlPlane, client};

const SOCKETS: usize = 2_500;

/// Whatever happens, an answer comes within this time.
const AT_MOST: Duration = Duration::from_secs(3);

/// This process needs a descriptor for each socket.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let needed = Some(SOCKETS as u64 + 500);
    if limit.current < needed {
        setrlimit(Resource::Nofile, Rlimit { current: needed.min(limit.maximum), ..limit })
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_sockets_keep_nobody_out() {
    allow_descriptors();
    let mut plane = ControlPlane::new(None);
    let probes = format!("127.0.0.1:{}", lasting_loopback_port().unwrap());
    plane.set(&["--probe-listen", &probes]);
    plane.start().await;
    let id = plane.declare("web-1", 0).await;
    plane.wait_for_phase(&id, "Ready").await;
    let port: u16 = plane.url().rsplit(':').next().unwrap().parse().unwrap();
    let (api, probes): (SocketAddr, SocketAddr) =
        ((Ipv4Addr::LOCALHOST, port).into(), probes.parse().unwrap());
    let half_header = "GET /api/v1/resources HTTP/1.1\r\nhost: x\r\n";
    let half_body = "POST /v1/register HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{";
    for (target, half) in [(api, ""), (api, half_header), (api, half_body), (probes, "")] {
        let mut sockets = Vec::new();
        for number in 0..SOCKETS {
            let mut socket = TcpStream::connect_timeout(&target, AT_MOST)
                .unwrap_or_else(|error| panic!("{half:?} {number}: {error}"));
            // One that had to yield may be closed already.
            let _ = socket.write_all(half.as_bytes());
            sockets.push(socket);
            if number % 250 == 249 {
                assert_answers(&plane, api, probes, half).await;
            }
        }
        assert_answers(&plane, api, probes, half).await;
        drop(sockets);
    }
    plane.assert_goes(&id).await;
    plane.stop().await;
}

/// New connections each: what is open already proves nothing.
async fn assert_answers(plane: &ControlPlane, api: SocketAddr, probes: SocketAddr, half: &str) {
    for (address, path, status) in [
        (api, "/healthz", 200),
        (api, "/readyz", 200),
        (api, "/api/v1/resources", 401),
        (probes, "/healthz", 200),
        (probes, "/readyz", 200),
        (probes, "/metrics", 200),
        (probes, "/api/v1/resources", 404),
    ] {
        let begun = Instant::now();
        let asked = client().get(format!("http://{address}{path}")).timeout(AT_MOST).send().await;
        let answer = asked.unwrap_or_else(|error| {
            panic!("{half:?} {path}: {error:?} after {:?}\n{}", begun.elapsed(), plane.log_tail())
        });
        assert_eq!(answer.status().as_u16(), status, "{half:?} {path}");
    }
}
