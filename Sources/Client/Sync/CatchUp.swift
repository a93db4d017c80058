import ThicketProtocol

/// Finds the end of the answer to `cv`: it may come in several messages, and none of them says that it is the last.
///
/// The position reached is asked about again. An empty answer says that there is no more. So does a message that begins
/// like one heard after the first question: answers come in order, so this is the answer to a question, and everything
/// before it is here; what it repeats is known and ignored. Only the first `questionsMax` messages lead to questions:
/// an answer in many parts must not come again once for each of them.
struct CatchUp {
    private var questions = 0
    /// Where the first message after the first question began.
    private var firstHeard: ChangeVersion?

    private static let questionsMax = 2

    enum Verdict {
        case wait
        case ask
        case complete
    }

    /// - Parameters:
    ///   - first: position of the message's first change.
    ///   - isAnswer: false: it may be an early acknowledgement, which is no part of the answer.
    mutating func heard(first: ChangeVersion?, isAnswer: Bool) -> Verdict {
        if questions > 0, isAnswer, let first {
            if firstHeard == first { return .complete }
            if firstHeard == nil { firstHeard = first }
        }
        guard questions < Self.questionsMax else { return .wait }
        questions += 1
        return .ask
    }
}
