import ThicketNet
import ThicketProtocol

// Requests about blobs: the hub checks the token, the blob workers do the rest.
extension Hub {
    /// Handles an accepted token.
    func begin(_ call: BlobCall, on channel: Channel, _ admission: Admission) {
        guard admission.canWrite || !call.writes else { return answer(channel.session, BlobAnswer.readOnly) }
        guard let app = channel.session.app else { return }
        actions.append(
            .blob(
                channel.session.id,
                BlobOrder(
                    call: call, app: app, user: admission.user, guestBytesMax: admission.guest?.bytesMax)))
    }

    /// Answers a request. Without such a request it has no effect.
    public func respond(_ id: ConnectionID, _ response: HTTPResponse) {
        guard let session = session(id) else { return }
        answer(session, response)
        emptyLeaving()
    }

    /// Ends a request whose answer another part of the server sends.
    /// - Returns: the fields that the answer must carry; nil without such a request.
    func release(_ id: ConnectionID, status: Int) -> [HTTPField]? {
        guard let session = session(id), !session.isClosing, let exchange = session.exchange else { return nil }
        session.isClosing = true
        leaving.append(session)
        metrics.restAnswers.add(1, .init(status: status))
        emptyLeaving()
        return exchange.call.answerFields
    }
}
