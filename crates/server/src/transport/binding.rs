//! Binding: a listening socket for an address.

use std::io;
use std::net::SocketAddr;

use socket2::SockRef;
use tokio::net::TcpListener;

/// The largest segment that Linux lets a program set.
const LARGEST_SEGMENT: u32 = 32_767;

/// Listens on `address`.
///
/// On loopback, Linux gives a connection larger segments than a program may set. Clients that set
/// what they read, as azure-servicebus 7.14.3 with asyncio does within TLS, would fail. No other
/// kind of network has segments of this size.
///
/// # Errors
/// When the address is not this machine's, or taken.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await?;
    if cfg!(target_os = "linux") {
        // A system without this option serves all other clients.
        drop(SockRef::from(&listener).set_tcp_mss(LARGEST_SEGMENT));
    }
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    /// More than one segment of another network.
    const SENT: usize = 2_000;

    #[tokio::test]
    async fn a_client_may_set_the_segment_size_that_it_reads() {
        let listener = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let mut client = client.await.unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        // Segments grow with what has been sent.
        client.write_all(&[0; SENT]).await.unwrap();
        accepted.read_exact(&mut [0; SENT]).await.unwrap();
        accepted.write_all(&[0; SENT]).await.unwrap();
        client.read_exact(&mut [0; SENT]).await.unwrap();
        let segment = SockRef::from(&client).tcp_mss().unwrap();
        if cfg!(target_os = "linux") {
            SockRef::from(&client).set_tcp_mss(segment).unwrap();
        }
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_refused() {
        let first = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let second = bind(first.local_addr().unwrap()).await;
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
