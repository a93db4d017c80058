/// Sends a number of changes on each socket, a few of each in flight at a time, so that they are mixed in the log.
///
/// Each socket receives only its own changes: its user has no other socket.
func changeAll(
    _ sockets: [LoadSocket], on loop: LoadLoop, each: Int, inFlight: Int,
    _ text: (_ socket: LoadSocket, _ number: Int) -> String
) throws {
    var left: Int = each * sockets.count
    var refused = 0
    // `received` counts the changes that the socket has sent.
    func sendNext(_ socket: LoadSocket) {
        guard socket.received < each else { return }
        socket.send(text(socket, socket.received))
        socket.received += 1
    }
    for socket in sockets {
        socket.received = 0
        for _ in 0..<inFlight { sendNext(socket) }
    }
    try loop.run(
        until: { left <= 0 || refused > 0 },
        receive: { socket, bytes in
            if contains(bytes, "\"error\"") { refused += 1 }
            for _ in 0..<occurrences(of: "\"ccids\"", in: bytes) {
                left -= 1
                sendNext(socket)
            }
        })
    guard refused == 0 else { throw BenchError("the server refused changes: the figures would mean nothing") }
}
