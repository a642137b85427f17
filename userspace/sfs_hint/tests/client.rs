//! The client with real sockets.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use sfs_hint::{decode, Address, Client, Delivery, Form, Hint, SendError, MAX_DATAGRAM_BYTES};

fn unix(path: &Path) -> Address {
    Address::Unix(path.to_owned())
}

fn listen(path: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).unwrap();
    let patience = Some(Duration::from_secs(10));
    socket.set_read_timeout(patience).unwrap();
    socket
}

fn received(socket: &UnixDatagram) -> Vec<Hint> {
    let mut buffer = [0; MAX_DATAGRAM_BYTES + 1];
    let length = socket.recv(&mut buffer).unwrap();
    decode(&buffer[..length]).unwrap()
}

#[test]
fn hints_arrive_in_both_forms() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hint.sock");
    let listener = listen(&path);
    let hint = Hint {
        function: Some("my function".to_owned()),
        arrived_at_ns: Some(5_000_000),
        ..Hint::of(42)
    };
    for form in [Form::Text, Form::Binary] {
        let mut client = Client::connect(&unix(&path), form).unwrap();
        assert_eq!(client.send(&hint).unwrap(), Delivery::Sent);
        assert_eq!(received(&listener), std::slice::from_ref(&hint));
    }
}

#[test]
fn hints_arrive_over_udp() {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    let patience = Some(Duration::from_secs(10));
    listener.set_read_timeout(patience).unwrap();
    let address = Address::udp(listener.local_addr().unwrap()).unwrap();
    let mut client = Client::connect(&address, Form::Text).unwrap();
    assert_eq!(client.send(&Hint::of(7)).unwrap(), Delivery::Sent);
    let mut buffer = [0; 64];
    let length = listener.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"pid=7\n");
}

#[test]
fn many_hints_share_datagrams() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hint.sock");
    let listener = listen(&path);
    let hints: Vec<Hint> = (1..=300).map(Hint::of).collect();
    let mut client = Client::connect(&unix(&path), Form::Binary).unwrap();
    assert_eq!(client.send_all(&hints).unwrap(), 300);
    assert_eq!(client.send_all(&[]).unwrap(), 0);
    let datagrams: Vec<_> = (0..3).map(|_| received(&listener)).collect();
    assert_eq!(datagrams.concat(), hints);
}

#[test]
fn a_full_socket_drops_hints_and_reports_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hint.sock");
    let listener = listen(&path);
    let mut client = Client::connect(&unix(&path), Form::Text).unwrap();
    // Some systems queue 10 datagrams for a socket, some 512.
    let fits = (1..100_000)
        .take_while(|&pid| client.send(&Hint::of(pid)).unwrap() == Delivery::Sent)
        .count();
    assert!((1..99_999).contains(&fits), "{fits} fitted");
    let hints = vec![Hint::of(1); 100];
    assert_eq!(client.send_all(&hints).unwrap(), 0);
    assert_eq!(received(&listener), [Hint::of(1)]);
    assert_eq!(client.send_all(&hints).unwrap(), 100);
}

#[test]
fn an_invalid_hint_sends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hint.sock");
    let listener = listen(&path);
    listener.set_nonblocking(true).unwrap();
    let mut client = Client::connect(&unix(&path), Form::Text).unwrap();
    let hints = [Hint::of(1), Hint::of(0)];
    let error = client.send_all(&hints).unwrap_err();
    assert_eq!(
        error.to_string(),
        "hint for process 0: a process id is at least 1"
    );
    assert!(matches!(client.send(&hints[1]), Err(SendError::Encode(_))));
    let nothing = listener.recv(&mut [0; 64]).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
}

#[test]
fn the_client_outlives_the_listener() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hint.sock");
    let absent = Client::connect(&unix(&path), Form::Text).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);

    let listener = listen(&path);
    let mut client = Client::connect(&unix(&path), Form::Text).unwrap();
    drop(listener);
    assert!(matches!(client.send(&Hint::of(1)), Err(SendError::Io(_))));
    std::fs::remove_file(&path).unwrap();
    let listener = listen(&path);
    assert_eq!(client.send(&Hint::of(2)).unwrap(), Delivery::Sent);
    assert_eq!(received(&listener), [Hint::of(2)]);
}

#[test]
fn a_udp_port_without_a_listener_is_reported() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = Address::udp(port.local_addr().unwrap()).unwrap();
    drop(port);
    let mut client = Client::connect(&address, Form::Text).unwrap();
    // The first send triggers the error, a later one reports it.
    let told = (0..100).any(|_| client.send(&Hint::of(1)).is_err());
    assert!(told);
}
