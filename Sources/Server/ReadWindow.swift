import ThicketProtocol

/// Reads on their way to the readers, few of each user at once: answers come back to the loop as fast as readers find
/// them, and what comes back in one turn is to be little, whoever asked for how much.
struct ReadWindow {
    /// Reads of one user that the readers have, those with large answers left out.
    static let smallMax = 32
    /// Those with large answers: what they hold of memory is beyond the reach of the bounds on queued bytes.
    static let largeMax = 4

    private var small = FairRow<ReadRequest>()
    private var large = FairRow<ReadRequest>()

    mutating func append(_ request: ReadRequest, of lane: UInt32) {
        if request.question.hasLargeAnswer { large.append(request, of: lane) } else { small.append(request, of: lane) }
    }

    /// What the readers may begin with now.
    mutating func takeOne() -> (lane: UInt32, work: ReadRequest)? {
        small.takeOne(atOnce: Self.smallMax) ?? large.takeOne(atOnce: Self.largeMax)
    }

    /// A read was answered, or goes back to waiting.
    mutating func done(_ request: ReadRequest, of lane: UInt32) {
        if request.question.hasLargeAnswer { large.done(lane) } else { small.done(lane) }
    }
}
