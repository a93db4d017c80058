import ThicketCrypto
import ThicketNet
import ThicketProtocol

// The data API on the loop's thread.
extension ServerLoop {
    /// - Returns: nil for paths that are not the data API's.
    func answerREST(_ request: HTTPRequest, on connection: ConnectionID) -> HTTPDisposition? {
        guard RESTHandler.owns(request.path) else { return nil }
        hub.metrics.httpRequests.add(1, .rest)
        let handler = RESTHandler(
            cors: routes.cors, documentBytesMax: hub.limits.documentBytesMax, makeChangeID: { RandomBytes.hex(16) })
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
