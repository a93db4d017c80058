import ThicketServer

/// The cost of a missed change, a delivery and an object of a first sync with ten times as many of them: CPU time, like
/// the rest of `growth`.
func growthOfReading() async throws -> [Figure] {
    var figures: [Figure] = try missedGrowth()
    figures += try await pairs("a missed change, 10,000 of them", from: 10_000) {
        try catchUp(changes: $0, rounds: 3).value("server CPU a change")
    }
    figures += try await pairs("a delivery, 100 receivers", from: 100) {
        try fanout(receivers: $0, rounds: 200).value("server CPU per delivery")
    }
    figures += try await pairs("an object of a first sync, 10,000 of them, client and server", from: 10_000) { count in
        let all: [Figure] = try await firstSync(objects: count)
        return (try all.value("client CPU") + all.value("server CPU")) / Double(count) * 1e6
    }
    return figures
}

/// Microseconds for a count and for ten times that count, each on its own server, alternating.
private func pairs(
    _ what: String, from count: Int, _ cost: (_ count: Int) async throws -> Double
) async throws -> [Figure] {
    var costs: [[Double]] = [[], []]
    for round: Int in 0..<5 {
        for place in round % 2 == 0 ? [0, 1] : [1, 0] {
            costs[place].append(try await cost(place == 0 ? count : 10 * count))
        }
    }
    return growthFigures(what, costs[0], costs[1])
}

extension [Figure] {
    /// The figure of a name.
    fileprivate func value(_ name: String) throws -> Double {
        guard let figure: Figure = first(where: { $0.name == name }), figure.value.isFinite else {
            throw BenchError("there is no figure '\(name)'")
        }
        return figure.value
    }
}
