import ThicketCrypto
import ThicketNet
import ThicketProtocol

// The data API on the loop's thread.
extension ServerLoop {
    /// - Parameter request: a request whose path is the data API's.
    func answerData(_ request: HTTPRequest, on connection: ConnectionID) -> HTTPDisposition {
        hub.metrics.httpRequests.add(1, .rest)
        if BlobHandler.owns(request.path) { return answerBlob(request, on: connection) }
        let handler = RESTHandler(
            cors: pages.cors, documentBytesMax: hub.limits.documentBytesMax, makeChangeID: { RandomBytes.hex(16) })
        switch handler.read(request) {
        case .answer(let response):
            hub.metrics.restAnswers.add(1, .init(status: response.status))
            return .respond(response)
        case .call(let call):
            hub.call(connection, call, now: now())
            perform()
            switch call.operation {
            case .changes, .all: return .waits
            default: return .later
            }
        }
    }
}
