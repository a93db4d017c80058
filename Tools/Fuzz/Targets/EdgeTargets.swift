import ThicketProtocol

/// The preface of a proxy before its client's bytes. Byte 0 chooses the size of the pieces: any cutting gives the same
/// result, and no byte behind the preface is consumed.
public func fuzzProxyPreface(_ bytes: [UInt8]) {
    guard let choice = bytes.first else { return }
    let stream = bytes.dropFirst()
    let whole = preface(stream, pieces: max(1, stream.count))
    let cut = preface(stream, pieces: 1 + Int(choice) % 16)
    precondition(whole == cut, "what is read does not depend on how it arrives")
    if let source = whole.source { check(source) }
    precondition(whole.source == nil || whole.isComplete, "no address before the end")
}

/// Lists of networks, and the fields that proxies write. The first line is the list, the second the peer, the others
/// fields.
public func fuzzForwarded(_ bytes: [UInt8]) {
    let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
    }
    guard lines.count >= 2, case .success(let trusted) = TrustedProxies.parse(lines[0]),
        let peer = IPAddress(lines[1])
    else { return }
    check(peer)
    for network in trusted.networks {
        precondition(network.contains(network.address), "a network has its own address")
        precondition(IPNetwork(network.description) == network, "a network is read as it is written")
    }
    let fields = HTTPFields(lines.dropFirst(2).map { HTTPField("x-forwarded-for", $0) })
    let client = trusted.client(of: peer, fields)
    check(client)
    precondition(trusted.contains(peer) || client == peer, "a stranger speaks for itself only")
    // Text that a client writes in front of its proxy's addition changes nothing.
    let forged = ["203.0.113.9", "2001:db8:ffff::9"].compactMap { IPAddress($0) }.first {
        !trusted.contains($0)
    }
    if let forged, trusted.contains(peer) {
        let spoofed = HTTPFields(fields.all + [HTTPField("x-forwarded-for", forged.description)])
        precondition(trusted.client(of: peer, spoofed) == forged, "the last word is the proxy's")
    }
}

private struct PrefaceResult: Equatable {
    var isComplete = false
    var source: IPAddress?
    var rest = 0
    var failure: ProxyPreface.Failure?
}

private func preface(_ stream: ArraySlice<UInt8>, pieces size: Int) -> PrefaceResult {
    var reader = ProxyPreface()
    var rest = stream
    while !rest.isEmpty {
        let piece = Array(rest.prefix(size))
        let outcome = piece.withUnsafeBytes { bytes in
            Result { () throws(ProxyPreface.Failure) in
                var input = bytes
                let isComplete = try reader.consume(&input)
                return (isComplete, bytes.count - input.count)
            }
        }
        switch outcome {
        case .failure(let failure): return PrefaceResult(failure: failure)
        case .success((let isComplete, let taken)):
            rest = rest.dropFirst(taken)
            if isComplete { return PrefaceResult(isComplete: true, source: reader.source, rest: rest.count) }
        }
    }
    return PrefaceResult()
}

private func check(_ address: IPAddress) {
    precondition(IPAddress(address.description) == address, "an address is read as it is written")
}
