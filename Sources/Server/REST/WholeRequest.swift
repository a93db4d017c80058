import ThicketNet
import ThicketProtocol

/// A request of the data API with its whole body, as a connection reads it: for models of the server.
package struct WholeRequest: Sendable {
    /// The head, with its body unless that is the bytes of a blob.
    package let head: HTTPRequest
    /// The bytes of a blob or part; nil for other requests.
    package let content: [UInt8]?

    /// Reads the bytes of one request.
    /// - Returns: nil if they are not one whole request.
    package init?(parsing bytes: [UInt8]) {
        var (reader, head, content) = (HTTPRequestReader(), HTTPRequest?.none, [UInt8]?.none)
        let isWhole = bytes.withUnsafeBytes { input in
            var input = input
            while let event = try? reader.next(&input, streams: Self.streams) {
                switch event {
                case .request(let request): head = request
                case .head(let request, _): (head, content) = (request, [])
                case .piece(let piece, let isLast):
                    content? += piece
                    if isLast { return input.isEmpty }
                }
            }
            return input.isEmpty && !reader.isInsideRequest
        }
        guard let head, isWhole else { return nil }
        (self.head, self.content) = (head, content)
    }

    /// As the loop decides it.
    private static func streams(_ head: HTTPRequest) -> Int? {
        BlobHandler.hasBlobBody(head) ? BlobCall.partBytesRange.upperBound : nil
    }
}

extension Hub {
    /// Handles a request of the data API as the loop does.
    /// - Parameter blobPartBytesMin: fewest bytes of a part of a blob; nil: those of the protocol.
    /// - Returns: the answer, if it depends on neither the user nor the store; nil: a `respond` or `blob` action
    ///   follows.
    package func begin(
        _ request: WholeRequest, on id: ConnectionID, now: HubInstant, blobPartBytesMin: Int? = nil
    ) -> HTTPResponse? {
        let cors = CORSPolicy("none")
        let reading =
            BlobHandler.owns(request.head.path)
            ? BlobHandler(cors: cors, partBytesMin: blobPartBytesMin ?? BlobCall.partBytesRange.lowerBound)
                .read(request.head, length: request.content?.count)
            : RESTHandler(cors: cors, documentBytesMax: limits.documentBytesMax, makeChangeID: { "none" })
                .read(request.head)
        switch reading {
        case .answer(let response): return response
        case .call(let call):
            self.call(id, call, now: now)
            return nil
        }
    }
}
