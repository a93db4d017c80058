import ThicketNet
import ThicketProtocol

// Requests about blobs on the loop's thread.
extension ServerLoop {
    func streamedBodyMax(of head: HTTPRequest) -> Int? {
        blobs != nil && BlobHandler.hasBlobBody(head) ? BlobCall.partBytesRange.upperBound : nil
    }

    func begins(_ request: HTTPRequest, length: Int, on connection: ConnectionID) {
        hub.metrics.httpRequests.add(1, .rest)
        if let response = beginBlob(request, length: length, on: connection) { loop.respond(connection, response) }
    }

    func received(_ connection: ConnectionID, body: UnsafeRawBufferPointer, isLast: Bool) {
        blobs?.received(connection, body, isLast: isLast)
    }

    func wantsBody(_ connection: ConnectionID) { blobs?.wantsBody(connection) }

    /// Handles a request about blobs whose body, if any, is in memory.
    func answerBlob(_ request: HTTPRequest, on connection: ConnectionID) -> HTTPDisposition {
        guard blobs != nil else { return .respond(pages.cors.marking(RESTAnswer.noSuchPath, to: request)) }
        return beginBlob(request, on: connection).map { .respond($0) } ?? .later
    }

    /// - Returns: the answer, if it does not depend on the user.
    private func beginBlob(
        _ request: HTTPRequest, length: Int? = nil, on connection: ConnectionID
    ) -> HTTPResponse? {
        switch BlobHandler(cors: pages.cors).read(request, length: length) {
        case .answer(let response):
            hub.metrics.restAnswers.add(1, .init(status: response.status))
            return response
        case .call(let call):
            hub.call(connection, call, now: now())
            perform()
            return nil
        }
    }

    func answered(_ reports: [ServerBlobs.Report]) {
        for report in reports { blobs?.handle(report) }
        perform()
    }
}
