import ThicketProtocol

/// Frames in both roles. Byte 0 chooses the role, the size of the pieces and whether binary is accepted; the rest are
/// the peer's bytes. Any cutting gives the same events, and their contents obey the rules.
public func fuzzWebSocket(_ bytes: [UInt8]) {
    guard let choice = bytes.first else { return }
    let role: WebSocketRole = choice & 1 == 0 ? .server : .client
    let acceptsBinary = choice & 2 == 0
    let stream = bytes.dropFirst()
    let whole = frames(stream, role, acceptsBinary, pieces: max(1, stream.count))
    let cut = frames(stream, role, acceptsBinary, pieces: 1 + Int(choice >> 2))
    precondition(whole == cut, "what is read does not depend on how it arrives")
    for seen in whole { check(seen, acceptsBinary: acceptsBinary) }
    precondition(whole.dropLast().allSatisfy { !$0.isEnd }, "nothing comes behind the end")
}

private let messageBytesMax = 4_096

private enum SeenFrame: Equatable {
    case text([UInt8])
    case binary([UInt8])
    case ping([UInt8])
    case pong([UInt8])
    case close(UInt16?, [UInt8])
    case failure(WebSocketFailure.Problem)

    var isEnd: Bool {
        switch self {
        case .close, .failure: true
        default: false
        }
    }
}

private func frames(
    _ stream: ArraySlice<UInt8>, _ role: WebSocketRole, _ acceptsBinary: Bool, pieces size: Int
) -> [SeenFrame] {
    var reader = WebSocketReader(role: role, messageBytesMax: messageBytesMax, acceptsBinary: acceptsBinary)
    var seen = [SeenFrame]()
    var rest = stream
    while !rest.isEmpty {
        var piece = Array(rest.prefix(size))
        rest = rest.dropFirst(size)
        piece.withUnsafeMutableBytes { buffer in
            var input = buffer
            do throws(WebSocketFailure) {
                while let event = try reader.next(&input) { seen.append(seenFrame(event)) }
                precondition(input.isEmpty, "what is not an event is consumed")
            } catch {
                precondition(reader.isFinished, "a failure is the end")
                precondition(error.code.mayBeSent, "a failure has a code that may be sent")
                seen.append(.failure(error.problem))
            }
        }
    }
    return seen
}

private func seenFrame(_ event: WebSocketEvent) -> SeenFrame {
    switch event {
    case .text(let bytes): .text(Array(bytes))
    case .binary(let bytes): .binary(Array(bytes))
    case .gatheredText(let bytes): .text(bytes)
    case .gatheredBinary(let bytes): .binary(bytes)
    case .ping(let bytes): .ping(Array(bytes))
    case .pong(let bytes): .pong(Array(bytes))
    case .close(let code, let reason): .close(code?.rawValue, Array(reason))
    }
}

private func check(_ seen: SeenFrame, acceptsBinary: Bool) {
    switch seen {
    case .text(let bytes):
        precondition(bytes.count <= messageBytesMax, "messages are bounded")
        precondition(String(validating: bytes, as: UTF8.self) != nil, "text is UTF-8")
        roundTrip(.text, bytes)
    case .binary(let bytes):
        precondition(acceptsBinary && bytes.count <= messageBytesMax, "binary is bounded, and wanted")
        roundTrip(.binary, bytes)
    case .ping(let bytes), .pong(let bytes): precondition(bytes.count <= 125, "control frames are short")
    case .close(let code, let reason):
        precondition(code.map { WebSocketCloseCode(rawValue: $0).mayBeSent } ?? reason.isEmpty, "codes are real")
        precondition(reason.count <= 123 && String(validating: reason, as: UTF8.self) != nil, "reasons are UTF-8")
    case .failure: break
    }
}

/// A message that one side writes is read by the other.
private func roundTrip(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
    for (role, mask): (WebSocketRole, UInt32?) in [(.server, 0xA1B2_C3D4), (.client, nil)] {
        let expected: SeenFrame = opcode == .text ? .text(payload) : .binary(payload)
        let written = WebSocketWriter.frame(opcode, payload, mask: mask)
        precondition(frames(written[...], role, true, pieces: written.count) == [expected], "frames read back")
    }
}
