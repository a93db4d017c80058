import ThicketProtocol

/// What a proxy says before its client does. Byte 0 chooses the size of the pieces: however it is cut, the same comes out, and
/// not a byte behind it is taken.
public func fuzzProxyPreface(_ bytes: [UInt8]) {
    guard let choice: UInt8 = bytes.first else { return }
    let stream: ArraySlice<UInt8> = bytes.dropFirst()
    let whole: PrefaceResult = preface(stream, pieces: max(1, stream.count))
    let cut: PrefaceResult = preface(stream, pieces: 1 + Int(choice) % 16)
    precondition(whole == cut, "what is read does not depend on how it arrives")
    if let source: IPAddress = whole.source { check(source) }
    precondition(whole.source == nil || whole.isComplete, "no address before the end")
}

/// Lists of networks, and the fields that proxies write. The first line is the list, the second the peer, the others fields.
public func fuzzForwarded(_ bytes: [UInt8]) {
    let lines: [String] = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
    }
    guard lines.count >= 2, case .success(let trusted) = TrustedProxies.parse(lines[0]),
        let peer: IPAddress = .init(lines[1])
    else { return }
    check(peer)
    for network: IPNetwork in trusted.networks {
        precondition(network.contains(network.address), "a network has its own address")
        precondition(IPNetwork(network.description) == network, "a network is read as it is written")
    }
    let fields: HTTPFields = .init(lines.dropFirst(2).map { HTTPField("x-forwarded-for", $0) })
    let client: IPAddress = trusted.client(of: peer, fields)
    check(client)
    precondition(trusted.contains(peer) || client == peer, "a stranger speaks for itself only")
    // Whatever a client writes in front of what its proxy adds changes nothing.
    let stranger: IPAddress? = ["203.0.113.9", "2001:db8:ffff::9"].compactMap { IPAddress($0) }.first {
        !trusted.contains($0)
    }
    if let stranger, trusted.contains(peer) {
        let spoofed: HTTPFields = .init(fields.all + [HTTPField("x-forwarded-for", stranger.description)])
        precondition(trusted.client(of: peer, spoofed) == stranger, "the last word is the proxy's")
    }
}

private struct PrefaceResult: Equatable {
    var isComplete: Bool = false
    var source: IPAddress?
    var rest: Int = 0
    var failure: ProxyPreface.Failure?
}

private func preface(_ stream: ArraySlice<UInt8>, pieces size: Int) -> PrefaceResult {
    var reader: ProxyPreface = .init()
    var rest: ArraySlice<UInt8> = stream
    while !rest.isEmpty {
        let piece: [UInt8] = Array(rest.prefix(size))
        let outcome: Result<(Bool, Int), ProxyPreface.Failure> = piece.withUnsafeBytes { bytes in
            Result { () throws(ProxyPreface.Failure) in
                var input: UnsafeRawBufferPointer = bytes
                let isComplete: Bool = try reader.consume(&input)
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
