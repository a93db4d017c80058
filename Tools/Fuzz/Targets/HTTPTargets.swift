import ThicketProtocol

/// Requests as a server reads them. Byte 0 chooses the size of the pieces. Any cutting gives the same requests, and
/// none of them could be read differently by another server.
public func fuzzHTTPRequest(_ bytes: [UInt8]) {
    guard let choice = bytes.first else { return }
    let stream = bytes.dropFirst()
    let (whole, wholeProblem) = requests(stream, pieces: max(1, stream.count))
    let (cut, cutProblem) = requests(stream, pieces: 1 + Int(choice))
    precondition(whole == cut && wholeProblem == cutProblem, "what is read does not depend on how it arrives")
    if let wholeProblem { precondition((400...599).contains(wholeProblem.status), "a refusal has its status") }
    for request in whole { check(request) }
}

private func requests(_ stream: ArraySlice<UInt8>, pieces size: Int) -> ([HTTPRequest], HTTPFailure?) {
    var limits = HTTPLimits()
    (limits.headBytesMax, limits.targetBytesMax, limits.bodyBytesMax) = (2_048, 512, 1_024)
    var reader = HTTPRequestReader(limits: limits)
    var seen = [HTTPRequest]()
    var failure: HTTPFailure?
    var rest = stream
    while !rest.isEmpty && failure == nil {
        let piece = Array(rest.prefix(size))
        rest = rest.dropFirst(size)
        piece.withUnsafeBytes { buffer in
            var input = buffer
            do throws(HTTPFailure) {
                while !input.isEmpty, let request = try reader.next(&input) { seen.append(request) }
            } catch {
                failure = error
            }
        }
    }
    for request in seen {
        precondition(request.body.count <= limits.bodyBytesMax, "bodies are bounded")
        precondition(request.fields.all.count <= limits.fieldsMax, "fields are counted")
    }
    return (seen, failure)
}

private func check(_ request: HTTPRequest) {
    precondition(!request.method.isEmpty && request.method.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a method")
    precondition(request.target.utf8.first == 0x2F || request.target.utf8.elementsEqual("*".utf8), "a target")
    precondition(request.target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a target is visible ASCII")
    precondition(request.fields.count(of: "host") <= 1 && request.fields.count(of: "content-length") <= 1, "once")
    let isChunked = request.fields.count(of: "transfer-encoding") > 0
    precondition(!isChunked || request.fields.count(of: "content-length") == 0, "one way to end the body")
    for field in request.fields.all {
        precondition(!field.name.utf8.contains { $0 <= 0x20 || $0 == 0x3A || (0x41...0x5A).contains($0) }, "a name")
        precondition(!field.value.utf8.contains { $0 == 0x0A || $0 == 0x0D || $0 == 0 }, "a value is one line")
    }
    _ = (request.path, request.query, request.keepsAlive)
    if let key = try? WebSocketHandshake.key(of: request) {
        precondition(key.utf8.count == 24 && request.method.utf8.elementsEqual("GET".utf8), "an opening is a GET")
    }
    let answer = HTTPResponse.text(200, "x").encoded(for: request)
    precondition(answer.starts(with: "HTTP/1.1 200 OK\r\n".utf8), "every request can be answered")
}

/// Response heads as a client reads them. Byte 0 chooses the size of the pieces.
public func fuzzHTTPResponse(_ bytes: [UInt8]) {
    guard let choice = bytes.first else { return }
    let stream = bytes.dropFirst()
    let (whole, wholeRest, wholeProblem) = head(stream, pieces: max(1, stream.count))
    let (cut, cutRest, cutProblem) = head(stream, pieces: 1 + Int(choice))
    precondition(whole == cut && wholeRest == cutRest && wholeProblem == cutProblem, "cuts do not matter")
    guard let whole else { return }
    precondition((100...599).contains(whole.status), "a status")
    let nonce = [UInt8](repeating: 1, count: 16)
    let isAccepted = (try? WebSocketHandshake.check(whole, nonce: nonce) { Array($0.prefix(20)) }) != nil
    precondition(!isAccepted || whole.status == 101, "only 101 is an upgrade")
}

private func head(
    _ stream: ArraySlice<UInt8>, pieces size: Int
) -> (head: HTTPResponseHead?, rest: Int, problem: HTTPFailure?) {
    var reader = HTTPResponseHeadReader()
    var rest = stream
    while !rest.isEmpty {
        let piece = Array(rest.prefix(size))
        let result = piece.withUnsafeBytes { buffer in
            Result { () throws(HTTPFailure) in
                var input = buffer
                let head = try reader.next(&input)
                return (head, input.count)
            }
        }
        switch result {
        case .failure(let failure): return (nil, 0, failure)
        case .success((let head, let left)):
            rest = rest.dropFirst(piece.count - left)
            if let head { return (head, rest.count, nil) }
        }
    }
    return (nil, 0, nil)
}
