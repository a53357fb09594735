internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON

extension Contract {
    func wait(_ parameters: Parameters, _ request: Request) throws(Problem) -> Wait? {
        let longest = limits.waitMax
        if parameters.has("wait") {
            guard let text = parameters.value("wait") else { return Wait(duration: limits.waitDefault) }
            guard let seconds = Parameters.number(text), seconds.isFinite else {
                throw Problem(.badRequest, "bad-parameter", "wait must be a number of seconds, 0 or more")
            }
            guard seconds > 0 else { return nil }
            let isTooLong = seconds > Double(longest.components.seconds)
            return isTooLong
                ? Wait(duration: longest, applied: Int(longest.components.seconds))
                : Wait(duration: .milliseconds(Int(seconds * 1000)))
        }
        return preferredWait(request)
    }

    func preferredWait(_ request: Request) -> Wait? {
        guard request.head.known.contains(.prefer) else { return nil }
        switch Preferences(request[values: .prefer]).wait {
        case .usual?: return Wait(duration: limits.waitDefault, applied: Int(limits.waitDefault.components.seconds))
        case .seconds(0)?, nil: return nil
        case .seconds(let seconds)?:
            let duration = min(.seconds(min(seconds, 86_400)), limits.waitMax)
            return Wait(duration: duration, applied: Int(duration.components.seconds))
        }
    }

    func until(_ parameters: Parameters) throws(Problem) -> JSONValue? {
        guard let text = try parameters.text("until") else { return nil }
        do throws(JSONFault) {
            return try JSONValue(parsing: Array(text.utf8), depthMax: limits.depthMax)
        } catch {
            throw Problem(
                .badRequest, "bad-parameter", "until must be JSON, a string in quotes: \(error.detail)")
        }
    }

    /// The time of `debounce`; nil without one, or with 0.
    func debounce(_ parameters: Parameters) throws(Problem) -> Duration? {
        guard let text = try parameters.text("debounce") else { return nil }
        let longest = Int(limits.debounceMax / .milliseconds(1))
        guard let milliseconds: Int = Parameters.wholeNumber(text), (0...longest).contains(milliseconds) else {
            throw Problem(
                .badRequest, "bad-parameter", "debounce must be a number of milliseconds from 0 to \(longest)")
        }
        return milliseconds == 0 ? nil : .milliseconds(milliseconds)
    }
}
